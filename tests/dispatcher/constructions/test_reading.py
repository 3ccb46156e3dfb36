"""Sentences read by learned constructions, and by none once the flow has changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testbed.sentences import add_flow, called, parameters
from uncaged_dispatcher.calls import Call, Interpretation, Miss
from uncaged_dispatcher.constructions.construction import learn
from uncaged_dispatcher.constructions.kept import Constructions
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_engine.api import Engine

SCHEMA = parameters(device={}, level={"type": "integer"})


@pytest.fixture
def interpreter(engine: Engine) -> Iterator[Interpreter]:
    add_flow(engine, "lights", "lights", schema=SCHEMA)
    found = Interpreter(engine)
    yield found
    found.close()


def keep(engine: Engine, sentence: str, **params: object) -> None:
    call = Call(flow="lights", params=params)
    construction = learn(sentence, call, SCHEMA, thread="T", now_ms=7)
    assert construction is not None
    Constructions(engine.store).add("", construction)


def test_a_learned_sentence_is_read_without_a_model(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A construction reads the next sentence of its form, at the very next request, and the hit
    says that it was one.
    """
    assert isinstance(interpreter.interpret("make the lamp glow at 40"), Miss)
    keep(engine, "make the lamp glow at 40", device="lamp", level=40)
    found = interpreter.interpret("Make the ceiling GLOW at 7")
    assert isinstance(found, Interpretation)
    assert found.by == "construction"
    assert found.rule == "make the $(device:wildcard) glow at $(level:number)"
    assert called(interpreter, "make the hall glow at 7") == [
        ("lights", {"device": "hall", "level": 7})
    ]


def test_signs_of_the_pattern_language_are_plain_text(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A sentence with operators is learned as it is, and reads itself."""
    keep(engine, "glow (a|b) <c> [d] {e} x;y lamp -> now", device="lamp")
    assert called(interpreter, "glow (a|b) <c> [d] {e} x;y desk -> now") == [
        ("lights", {"device": "desk"})
    ]


def test_changed_parameters_silence_the_construction_at_once(
    engine: Engine, interpreter: Interpreter
) -> None:
    """After a new version with other parameters, and after `remove`, its sentences are a miss."""
    keep(engine, "make the lamp glow", device="lamp")
    assert called(interpreter, "make the lamp glow")
    add_flow(engine, "lights", "lights", schema=parameters("room", device={}, room={}))
    assert isinstance(interpreter.interpret("make the lamp glow"), Miss)
    add_flow(engine, "lights", "lights", "lamps", schema=SCHEMA)
    assert called(interpreter, "make the lamp glow")
    engine.registry.remove("lights")
    assert isinstance(interpreter.interpret("make the lamp glow"), Miss)


def test_a_deleted_construction_reads_nothing(engine: Engine, interpreter: Interpreter) -> None:
    """The deletion counts at the next sentence; the index keeps nothing of it."""
    keep(engine, "make the lamp glow", device="lamp")
    keep(engine, "dim the lamp now", device="lamp")
    [first, _] = Constructions(engine.store).all()
    Constructions(engine.store).remove(first.construction.id)
    sentences = ("make the lamp glow", "dim the lamp now")
    read = [isinstance(interpreter.interpret(text), Interpretation) for text in sentences]
    assert sorted(read) == [False, True]
