"""Random small grammars: the best reading, counts, required words and the kept form agree with the
list of all readings.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uncaged_dispatcher.grammar.best import best_reading
from uncaged_dispatcher.grammar.compiled import CompiledGrammar, compile_rules
from uncaged_dispatcher.grammar.grammars import Grammar
from uncaged_dispatcher.grammar.loading import load_rules
from uncaged_dispatcher.grammar.occurrences import Occurrences
from uncaged_dispatcher.grammar.sentences import Sentence

pytestmark = pytest.mark.slow

WORDS = ("a", "b", "ab", "ba", "再", "c,")
SPACINGS = ("", " [spacing=optional]", " [spacing=required]", " [spacing=none]")
words = st.sampled_from(WORDS)
phrases = st.lists(words, min_size=1, max_size=2).map(" ".join)
sentences = st.lists(
    st.sampled_from([*WORDS, "12", "x", "a,", "-3"]), min_size=0, max_size=6
).flatmap(lambda parts: st.sampled_from([" ".join(parts), "".join(parts)]))


@st.composite
def grammars(draw: st.DrawFn) -> str:
    """Draw a grammar of three rules without recursion."""
    variables = 0

    def part(level: int, depth: int) -> str:
        nonlocal variables
        kind = draw(st.sampled_from(["phrase", "text", "number", "group", "rule"]))
        if kind in ("text", "number"):
            variables += 1
            suffix = ":number" if kind == "number" else ""
            return f"$(v{variables}{suffix})" + draw(st.sampled_from(["", "", "?"]))
        if kind == "group" and depth < 2:
            mark = draw(st.sampled_from(["", "?", "*", "+"]))
            return f"({alternatives(level, depth + 1)}){mark}"
        if kind == "rule" and level < 2:
            return f"<R{draw(st.integers(level + 1, 2))}>"
        return draw(phrases)

    def alternatives(level: int, depth: int) -> str:
        sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
        return " | ".join(alternative(level, depth, size) for size in sizes)

    def alternative(level: int, depth: int, size: int) -> str:
        parts = [part(level, depth) for _ in range(size)]
        names = ", ".join(p[2:].partition(")")[0].partition(":")[0] for p in parts if "$" in p[:1])
        return " ".join(parts) + (f" -> [{names}]" if depth == 0 else "")

    rules = [f"<R{n}>{draw(st.sampled_from(SPACINGS))} = {alternatives(n, 0)};" for n in range(3)]
    start = f"<Start> = {alternatives(-1, 0)} | $(r:<R0>) -> {{ r }} | <R1> b -> 2;"
    return "\n".join([start, *rules])


def compiled(text: str) -> CompiledGrammar:
    """Return the compiled grammar."""
    return compile_rules(load_rules(text).rules)


@settings(max_examples=150, deadline=None)
@given(grammars(), sentences)
def test_the_best_reading_is_the_first_of_all(text: str, sentence: str) -> None:
    """The best reading has the least rank among all readings, and is one of them."""
    grammar = Grammar(compiled(text))
    ranked = grammar.ranked(sentence)
    best = grammar.best(sentence)
    if ranked.cut:
        return
    assert (best is None) == (not ranked)
    if best is not None:
        assert best.rank == ranked[0].rank
        assert best in ranked


@settings(max_examples=150, deadline=None)
@given(grammars(), sentences)
def test_free_characters_are_those_of_the_texts(text: str, sentence: str) -> None:
    """The characters counted for a reading are those of the texts in its value, each of which the
    sentence holds.
    """
    for reading in Grammar(compiled(text)).match(sentence):
        match reading.value:
            case list(values) | {"r": list(values)}:
                texts = [value for value in values if isinstance(value, str)]
                numbers = [value for value in values if isinstance(value, int)]
                assert reading.free_characters == sum(map(len, texts))
                assert reading.matched_values == len(texts) + len(numbers)
                assert all(value in sentence for value in texts)
            case value:
                assert value == 2
                assert reading.matched_values == 0


@settings(max_examples=150, deadline=None)
@given(grammars(), sentences)
def test_a_sentence_that_is_read_has_the_required_words(text: str, sentence: str) -> None:
    """An entry that reads a sentence requires a set of words that the sentence holds, and no other
    entry is needed to find the best reading.
    """
    grammar = compiled(text)
    parsed = Sentence(sentence)
    candidates = grammar.candidates(parsed)
    by_all = best_reading(grammar, Occurrences(parsed, whole_words=True))
    by_candidates = best_reading(grammar, Occurrences(parsed, whole_words=True), candidates)
    assert by_all == by_candidates


@settings(max_examples=100, deadline=None)
@given(grammars(), sentences)
def test_rules_from_json_read_the_same(text: str, sentence: str) -> None:
    """Rules that JSON kept are equal, and read a sentence in the same way."""
    grammar = compiled(text)
    again = CompiledGrammar.read(json.loads(json.dumps(grammar.document())))
    assert again.document() == grammar.document()
    assert again.entries == grammar.entries
    assert Grammar(again).best(sentence) == Grammar(grammar).best(sentence)
