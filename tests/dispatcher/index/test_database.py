"""Look-up of rules by the words of a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_dispatcher.grammar.best import best_reading
from uncaged_dispatcher.grammar.bounds import bound_of_rank
from uncaged_dispatcher.grammar.compiled import CompiledGrammar
from uncaged_dispatcher.grammar.occurrences import Occurrences
from uncaged_dispatcher.grammar.sentences import Sentence, index_words
from uncaged_dispatcher.index.compiling import compile_flow
from uncaged_dispatcher.index.database import RuleDatabase

PARTS = (
    *("a", "b", "(a | b)", "(c)?", "(a b)?", "$(x)", "$(n:number)?", "d-e", "(c | d e)", "(a)+"),
    *("$(x)?", "(b $(y))?", "a 3", "你好", "c\\+"),
)
WORDS = ("a", "b", "c", "d", "e", "d-e", "1", "x", "3", "a3", "你好", "你", "c+", "-1.5", ",")


@pytest.fixture
def database() -> Iterator[RuleDatabase]:
    found = RuleDatabase(None, "1")
    yield found
    found.close()


@given(
    st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4), min_size=1, max_size=6),
    st.lists(st.sampled_from(WORDS), max_size=6),
)
def test_a_look_up_finds_every_rule_that_reads_a_sentence(
    patterns: list[list[str]], words: list[str]
) -> None:
    """No rule that reads a sentence is left out by its required words, their order, or the key
    under which it is filed; and no reading is better than the bound of its rule.
    """
    database = RuleDatabase(None, "1")
    for number, parts in enumerate(patterns):
        descriptor = {"name": f"flow-{number}", "patterns": [" ".join(parts)]}
        with database.changing():
            database.put_source(str(number), {}, compile_flow(str(number), descriptor).rules)
    sentence = Sentence(" ".join(words))
    found = {rule.number: rule.bound for rule in database.find(index_words(sentence.folded))}
    for rule in database.rules():
        grammar = CompiledGrammar.read(json.loads(rule.body))
        reading = best_reading(grammar, Occurrences(sentence, whole_words=True))
        assert reading is None or rule.id in found, (rule.pattern, sentence.text)
        assert reading is None or bound_of_rank(reading.rank) >= found[rule.id], rule.pattern
    database.close()


def test_words_in_another_order_find_no_rule(database: RuleDatabase) -> None:
    """A rule is found by its words in their order, with others where it has other parts."""
    with database.changing():
        descriptor = {"name": "greet", "patterns": ["good $(x) morning"]}
        database.put_source("1", {}, compile_flow("1", descriptor).rules)
    assert len(database.find(["good", "old", "morning"])) == 1
    assert database.find(["good", "old", "morning", "all"]) == []
    assert database.find(["morning", "old", "good"]) == []
    assert database.find(["good"]) == []


def test_a_long_sentence_is_looked_up_by_its_known_words(database: RuleDatabase) -> None:
    """A sentence of many words finds a rule in the middle."""
    descriptor = {"name": "greet", "patterns": ["$(x) good morning $(y)"]}
    with database.changing():
        database.put_source("1", {}, compile_flow("1", descriptor).rules)
    words = [f"word{number}" for number in range(200)]
    assert len(database.find([*words, "good", "morning", *words])) == 1


def test_a_file_of_another_version_is_emptied(tmp_path: Path) -> None:
    """A file that another version wrote is used by that version only."""
    path = tmp_path / "rules.db"
    database = RuleDatabase(path, "1")
    with database.changing():
        descriptor = {"name": "greet", "patterns": ["good morning"]}
        database.put_source("1", {}, compile_flow("1", descriptor).rules)
    database.close()
    for version, count in (("1", 1), ("2", 0)):
        database = RuleDatabase(path, version)
        assert len(list(database.rules())) == count
        database.close()
