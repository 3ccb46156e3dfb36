"""Guesses of the flow of a sentence by its words."""

from __future__ import annotations

import pytest
from testbed.sentences import add_flow, parameters
from uncaged_dispatcher.grammar.sentences import fold, index_words
from uncaged_dispatcher.index.guess import MOST_RULES, likely_flow
from uncaged_dispatcher.index.rule_index import RuleIndex
from uncaged_dispatcher.packs.registered import RegisteredPacks
from uncaged_engine.api import Engine


def guess(engine: Engine, sentence: str) -> str | None:
    return likely_flow(engine.store, index_words(fold(sentence)))


def refresh(engine: Engine) -> None:
    """Fill the index, as a reading does."""
    index = RuleIndex(engine)
    index.refresh()
    index.close()


def test_words_of_one_flow_name_it(engine: Engine) -> None:
    """The rules of one flow that may read the sentence are enough; its parameters are not read."""
    add_flow(engine, "greet", "say hello to $(x)", "greet $(x)", schema=parameters("x", x={}))
    add_flow(engine, "part", "say goodbye to $(x)", schema=parameters("x", x={}))
    assert guess(engine, "say hello to Ann") is None, "there is no index yet"
    refresh(engine)
    assert guess(engine, "Say hello to Ann") == "greet"
    assert guess(engine, "say goodbye to Ann") == "part"
    assert guess(engine, "say nothing") is None


def test_words_of_two_flows_name_none(engine: Engine) -> None:
    """Where two flows share the words, the sentence has to be read."""
    for name in ("first", "second"):
        add_flow(engine, name, "say hello to $(x)", schema=parameters("x", x={}))
    refresh(engine)
    assert guess(engine, "say hello to Ann") is None


def test_a_disabled_or_marked_flow_is_not_guessed(engine: Engine) -> None:
    """A person turned the one off, and is asked about the other."""
    for name, verb in (("off", "conceal"), ("marked", "unmake"), ("free", "polish")):
        add_flow(engine, name, f"{verb} $(x)", schema=parameters("x", x={}))
    engine.registry.set_enabled("off", False)
    engine.registry.set_confirm("marked", True)
    refresh(engine)
    assert [guess(engine, f"{verb} it") for verb in ("conceal", "unmake", "polish")] == [
        None,
        None,
        "free",
    ]


def test_a_mark_after_the_last_sentence_counts(engine: Engine) -> None:
    """The index of sentences is older than the registry then."""
    for name in ("off", "marked"):
        add_flow(engine, name, f"{name} $(x)", schema=parameters("x", x={}))
    refresh(engine)
    assert [guess(engine, f"{name} it") for name in ("off", "marked")] == ["off", "marked"]
    engine.registry.set_enabled("off", False)
    engine.registry.set_confirm("marked", True)
    assert [guess(engine, f"{name} it") for name in ("off", "marked")] == [None, None]


def test_a_damaged_index_is_no_guess(engine: Engine) -> None:
    """A reading makes the index anew."""
    add_flow(engine, "greet", "say hello to $(x)", schema=parameters("x", x={}))
    refresh(engine)
    assert guess(engine, "say hello to Ann") == "greet"
    for path in (engine.store.root / "dispatcher").glob("rules.db*"):
        path.write_bytes(b"no database" * 100)
    assert guess(engine, "say hello to Ann") is None


def test_the_rules_of_the_best_bound_name_it(engine: Engine) -> None:
    """A rule with more words comes before one whose words the sentence has, too."""
    add_flow(engine, "greet", "say hello to $(x)", schema=parameters("x", x={}))
    add_flow(engine, "talk", "say $(x)", schema=parameters("x", x={}))
    refresh(engine)
    assert guess(engine, "say hello to Ann") == "greet"
    assert guess(engine, "say nothing") == "talk"


def test_a_rule_of_a_pack_names_none(engine: Engine) -> None:
    """Its calls are in its value, which only a reading gives."""
    add_flow(engine, "greet", "say hello to $(x)", schema=parameters("x", x={}))
    refresh(engine)
    assert guess(engine, "say hello to Ann") == "greet"
    pack = b"""
name: polite
flows: [greet]
rules: |
  <Start> = say hello to $(x) -> { flow: "greet", params: { x } };
"""
    RegisteredPacks(engine.store).add(pack, "polite.yaml")
    refresh(engine)
    assert guess(engine, "say hello to Ann") is None


@pytest.mark.parametrize("line", ["enabled: false", "hosts: [shop.test]"])
def test_a_flow_of_a_pack_that_is_not_read_now_is_not_guessed(engine: Engine, line: str) -> None:
    """A disabled pack, and one of a site, whose page the browser may not show; whether the flow
    names the pack or the pack lists the flow.
    """
    add_flow(engine, "greet", "say hello to $(x)", schema=parameters("x", x={}))
    add_flow(engine, "part", "say goodbye to $(x)", schema=parameters("x", x={}), pack="polite")
    packs = RegisteredPacks(engine.store)
    packs.add(b"name: polite\nflows: [greet]\n", "polite.yaml")
    refresh(engine)
    sentences = ("say hello to Ann", "say goodbye to Ann")
    assert [guess(engine, sentence) for sentence in sentences] == ["greet", "part"]
    packs.add(f"name: polite\nflows: [greet]\n{line}\n".encode(), "polite.yaml")
    refresh(engine)
    assert [guess(engine, sentence) for sentence in sentences] == [None, None]


def test_many_rules_are_not_looked_at(engine: Engine) -> None:
    """A worker waits for a look at a few rules only."""
    for count, flow in ((MOST_RULES, "few"), (MOST_RULES + 1, "many")):
        patterns = (f"{flow} of (kind{number})? $(x)" for number in range(count))
        add_flow(engine, flow, *patterns, schema=parameters(x={}))
    refresh(engine)
    assert guess(engine, "few of them") == "few"
    assert guess(engine, "many of them") is None
