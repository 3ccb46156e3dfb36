"""Patterns that are suggested for a flow, and what they are refused for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from testbed.sentences import add_flow, parameters
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.calls import Call
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_dispatcher.readings.pattern_sources import (
    PatternProposal,
    TranslatedSentence,
    from_sentences,
    from_words,
)
from uncaged_dispatcher.readings.pattern_suggestions import CheckedPattern, checked_patterns
from uncaged_engine.api import Engine

LAMP = parameters("device", device={}, level={"type": "integer", "default": 50})


@pytest.fixture
def interpreter(store: Store) -> Iterator[Interpreter]:
    engine = Engine(store)
    add_flow(engine, "light", "shine $(device:wildcard)", schema=LAMP)
    add_flow(engine, "paint", "paint the $(what:wildcard)", schema=parameters("what", what={}))
    interpreter = Interpreter(engine)
    yield interpreter
    interpreter.close()


def checked(interpreter: Interpreter, *proposals: PatternProposal) -> list[CheckedPattern]:
    return checked_patterns(interpreter, "light", LAMP, proposals)


def proposal(pattern: str, sentence: str, **params: object) -> PatternProposal:
    return PatternProposal(pattern=pattern, sentence=sentence, params=params, origin="example")


def test_a_sentence_becomes_a_pattern_with_its_values_as_places() -> None:
    """A value that the sentence does not have, but for a default, makes no pattern."""
    sentences = [
        TranslatedSentence(
            sentence=sentence, call=Call(flow="light", params=params), origin="translation"
        )
        for sentence, params in (
            ("make the lamp glow at 40!", {"device": "lamp", "level": 40}),
            ("brighten the hall", {"device": "hall", "level": 50}),
            ("brighten it", {"device": "lamp"}),
        )
    ]
    found = [(one.pattern, dict(one.params or {})) for one in from_sentences(sentences, LAMP)]
    assert found == [
        ("make the $(device:wildcard) glow at $(level:number)", {"device": "lamp", "level": 40}),
        ("brighten the $(device:wildcard)", {"device": "hall"}),
    ]


@pytest.mark.parametrize(
    ("description", "schema", "patterns"),
    [
        (
            "Switches the device on.",
            LAMP,
            ["switch (a | an | the)? $(device:wildcard) on", "light $(device:wildcard)"],
        ),
        (
            "Copies files: all of them",
            parameters("fromDir", "to", fromDir={}, to={}),
            [
                "copy files from dir $(fromDir:wildcard) to $(to:wildcard)",
                "light from dir $(fromDir:wildcard) to $(to:wildcard)",
            ],
        ),
        ("Tell $(x) -> {flow: 1}", parameters(), ["light"]),
        ("Set it", parameters("flag", flag={"type": "boolean"}), []),
        ("", parameters("n", n={"type": "integer"}), ["light $(n:number)"]),
    ],
)
def test_a_description_becomes_a_pattern(
    description: str, schema: dict[str, Any], patterns: list[str]
) -> None:
    """The verb is in the imperative, and each required parameter has a place; words that are no
    plain words make none.
    """
    assert [one.pattern for one in from_words("light", description, schema)] == patterns


def test_a_pattern_that_reads_its_sentence_is_suggested_once(interpreter: Interpreter) -> None:
    """A sentence that the flow or an earlier proposal reads needs no other pattern."""
    found = checked(
        interpreter,
        proposal("shine (the)? $(device:wildcard)", "shine lamp", device="lamp"),
        proposal("glow $(device:wildcard)", "glow lamp", device="lamp"),
        proposal("glow $(device:wildcard)", "glow desk", device="desk"),
        proposal("(glow) $(device:wildcard)", "glow hall", device="hall"),
    )
    assert [(one.proposal.sentence, one.refused) for one in found] == [("glow lamp", None)]


@pytest.mark.parametrize(
    ("pattern", "sentence", "params", "why"),
    [
        ("glow (a", "glow", {}, "expected"),
        ("glow $(device:wildcard)", "gleam lamp", {"device": "lamp"}, "does not read"),
        ("glow $(device:wildcard)", "glow lamp", {"device": "desk"}, "does not read"),
        ('glow -> { flow: "paint", params: {} }', "glow", {}, "parts only"),
        ("glow " * 3_000, "glow", {}, ""),
    ],
)
def test_a_pattern_that_does_not_read_its_sentence_is_refused(
    interpreter: Interpreter, pattern: str, sentence: str, params: dict[str, object], why: str
) -> None:
    """A pattern that is no rule, or that reads another call, is not suggested."""
    [found] = checked(interpreter, proposal(pattern, sentence, **params))
    assert found.refused is not None
    assert why in found.refused


@pytest.mark.parametrize(
    ("pattern", "sentence", "witness"),
    [
        ("paint the $(device:wildcard)", "paint the lamp", "paint the lamp"),
        ("paint (the)? $(device:wildcard)", "paint lamp", "paint the something"),
        ("$(device:wildcard) the something", "lamp the something", "paint the something"),
        ("paint the something", "paint the something", "paint the something"),
    ],
)
def test_a_pattern_that_takes_a_sentence_of_another_flow_is_refused(
    interpreter: Interpreter, pattern: str, sentence: str, witness: str
) -> None:
    """The witness is a sentence that both read: the proposal's own, one of its forms, or one of the
    other flow's.
    """
    params = {"device": "lamp"} if "lamp" in sentence else {}
    [found] = checked(interpreter, proposal(pattern, sentence, **params))
    assert (found.other, found.witness) == (("paint",), witness)
