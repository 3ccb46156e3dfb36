"""Wording that follows from a prompt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from uncaged_capture.values import Parameter
from uncaged_capture.wording import without_secrets, wording_of
from uncaged_dispatcher.index.compiling import load_pattern
from uncaged_dispatcher.packs.patterns import pattern_rule
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_engine.api import Engine

WORD = Parameter(name="word", value="maple", type="text")


@pytest.fixture
def interpreter(engine: Engine) -> Iterator[Interpreter]:
    with closing(Interpreter(engine)) as found:
        yield found


def test_each_prompt_is_read_by_its_own_pattern(interpreter: Interpreter) -> None:
    """Marks that mean something in a pattern are text there: addresses, options, code."""
    for rest in (
        "at http://127.0.0.1:80/a?b=c&d=1",
        "in src/*.py and /etc",
        "with --flag=1 and -n",
        "into <b>{x: [1]}</b>; then stop",
        "it's 9.50 $ or 5 % (or so) | #7 a/*b*/ \\d+ ^x~y",
        "- a -- b",
    ):
        prompt = f"Look for maple {rest}"
        wording = wording_of("look", prompt, (WORD,))
        [pattern] = wording.patterns
        grammar = load_pattern(pattern_rule("look", pattern, ["word"]))
        read = interpreter.read_by(grammar, "look", prompt.replace("maple", "two oaks"))
        assert read is not None, pattern
        assert read.calls[0].params == {"word": "two oaks"}


@pytest.mark.parametrize("prompt", ["maple", "", "Look for maple\nand oak", "x " * 200 + "maple"])
def test_a_prompt_without_words_or_with_many_has_no_pattern(prompt: str) -> None:
    """Nor has one of several lines; the description is short in any case."""
    wording = wording_of("look", prompt, (WORD,))
    assert wording.patterns == ()
    assert len(wording.description) < 260


def test_known_secrets_and_those_of_the_usual_forms_are_replaced() -> None:
    """A text in which they are replaced already stays as it is, and has no pattern."""
    known = {"maple-leaf-1": "LEAF_KEY"}
    text = without_secrets("log in as maple-leaf-1, password: hunter22x", known)
    assert text == "log in as secret:LEAF_KEY, password: secret:PASSWORD"
    assert without_secrets(text, known) == text
    wording = wording_of("log-in", text, ())
    assert not wording.patterns
    assert not wording.examples
    assert text in wording.description
