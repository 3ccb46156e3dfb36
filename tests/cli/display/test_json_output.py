"""JSON on stdout."""

from __future__ import annotations

import json

import pytest
from uncaged_cli.display import json_output


def test_a_document_is_lossless_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters and direction overrides travel as escapes: a terminal sees ASCII, a
    program gets every character.
    """
    value = {"text": "\x1b[2J\x9b31m\u202e漢", "list": (1, 2), "set": frozenset("ba")}
    json_output.document(value)
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert "\x1b" not in printed
    assert json.loads(printed) == {
        "text": "\x1b[2J\x9b31m\u202e漢",
        "list": [1, 2],
        "set": ["a", "b"],
    }


def test_a_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Each object of a stream ends with the only line feed."""
    json_output.line({"a": "x\ny\u2028z"})
    assert capsys.readouterr().out == '{"a":"x\\ny\\u2028z"}\n'
