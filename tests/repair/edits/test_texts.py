"""Strings, by the order of the candidates."""

from __future__ import annotations

import pytest
from uncaged_repair.edits.candidates import candidates
from uncaged_repair.edits.facts import ValueFacts
from uncaged_repair.edits.spans import read_source

SPARE = "\n".join(f"    spare{number} = 'word{number}'" for number in range(12))


def kinds(line: str, message: str = "") -> dict[str, str]:
    """Return the kinds of the edits of a function's first line by what it then is, best last."""
    source = read_source("x.py", f"def f(a, b):\n    {line}\n{SPARE}\n".encode())
    facts = ValueFacts(errors=(("AssertionError", message),) if message else ())
    found = [edit for _, edit in candidates(source, {2: 1.0}, facts)]
    return {
        edit.apply(source.data).decode().splitlines()[1].strip(): edit.kind
        for edit in reversed(found)
    }


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("return a[b or 'none']", "return a[b or '']"),
        ("return a['NONE']", "return a['none']"),
        ("return a['wrd7']", "return a['word7']"),
        ("return a[b'none']", "return a[b'']"),
    ],
)
def test_a_string_that_the_failure_shows_is_replaced_early(wrong: str, right: str) -> None:
    """A text in the result of the failing test is replaced by the empty one, by the same words in
    other letters, and by one of the file that resembles it, before other edits of the line; one
    that the failure does not show is not.
    """
    text = wrong.split("'")[1]
    shown = kinds(wrong, f"assert {{'a': '{text}'}} == {{'a': 1}}")
    assert [*shown][::-1].index(right) < 8
    hidden = kinds(wrong, "assert {'a': 'other'} == {'a': 1}")
    assert "string of the result" in shown.values()
    assert "string of the result" not in hidden.values()


def test_bytes_are_replaced_by_bytes() -> None:
    """The bytes of the file replace bytes, and its strings replace strings."""
    found = kinds("return a == b'left' or b == b'right'")
    assert "return a == b'right' or b == b'right'" in found
    assert not any("b'word1'" in text for text in found)
    assert not any("== 'word1'" in text for text in found)
