"""Verbs of the command line as calls of a pack's rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from uncaged_dispatcher.calls import Call, Interpretation, Miss
from uncaged_dispatcher.packs.pack import read_pack
from uncaged_dispatcher.packs.registered import RegisteredPacks
from uncaged_dispatcher.packs.verbs import is_verb, verb_refusal, verb_words
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_dispatcher.readings.overview import overview
from uncaged_engine.api import Engine

STRANGER = b"""
name: stranger
rules: |
  <Start> = wipe $(name) -> { flow: "@conversation delete", params: { name } };
"""


@pytest.fixture
def interpreter(engine: Engine) -> Iterator[Interpreter]:
    found = Interpreter(engine)
    yield found
    found.close()


def test_a_sentence_for_the_product_is_a_verb(interpreter: Interpreter) -> None:
    """The shipped pack reads it, without a model and without a flow."""
    found = interpreter.interpret("Please switch to the conversation travel plans.")
    assert isinstance(found, Interpretation)
    assert (found.by, found.pack) == ("verb", "product")
    [call] = found.calls
    assert (call.flow, dict(call.params)) == ("@conversation switch", {"name": "travel plans"})


def test_a_pack_of_another_origin_calls_no_verb(engine: Engine, interpreter: Interpreter) -> None:
    """A registered pack file cannot make a sentence a verb, not even under a shipped pack's
    name.
    """
    packs = RegisteredPacks(engine.store)
    packs.add(STRANGER, "stranger.yaml")
    found = interpreter.interpret("wipe budget")
    assert isinstance(found, Miss)
    assert "calls @conversation delete, which the pack does not list" in found.why
    packs.add(STRANGER.replace(b"name: stranger", b"name: product"), "product.yaml")
    assert isinstance(interpreter.interpret("wipe budget"), Miss)


def test_one_shipped_pack_has_the_sentences_for_the_command(engine: Engine) -> None:
    """Each of the others can be disabled, calls no verb, and shows the examples of its flows
    alone.
    """
    packs = RegisteredPacks(engine.store).read().packs
    assert len(packs) > 5
    assert [name for name, pack in packs.items() if pack.built_in] == ["product"]
    sections = [one for one in overview(engine).split("\n\n") if "  what can you do" in one]
    assert [one.partition(":")[0] for one in sections] == ["product"]


def test_only_one_known_verb_is_a_verb() -> None:
    """Several verbs, or one that no sentence may call, are refused."""
    verb, flow = Call(flow="@pack list"), Call(flow="list-files")
    assert [is_verb(calls) for calls in ((verb,), (flow,), (verb, verb), (verb, flow), ())] == [
        *(True, False, False, False, False)
    ]
    assert verb_refusal(verb) is None
    assert "no verb '@remove'" in str(verb_refusal(Call(flow="@remove", params={"name": "x"})))
    assert "no parameter 'x'" in str(verb_refusal(Call(flow="@pack list", params={"x": "y"})))
    assert "takes a text" in str(verb_refusal(Call(flow="@pack enable", params={"name": 3})))
    assert not read_pack(STRANGER, "stranger.yaml").built_in


def test_the_text_of_a_sentence_is_an_argument() -> None:
    """The words of the verb and its arguments are apart, so that no text becomes an option."""
    call = Call(flow="@conversation delete", params={"name": "--yes"})
    assert verb_words(call) == (["conversation", "delete"], ["--yes"])
