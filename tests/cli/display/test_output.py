"""Output streams: cleaning, colour, width."""

from __future__ import annotations

import io

import pytest
from uncaged_cli.display.output import Styled, note, paint, result, takes_colour, width_of, write


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_results_and_hints_go_their_own_ways(capsys: pytest.CaptureFixture[str]) -> None:
    """stdout holds what was asked for, stderr the rest."""
    result("a ", Styled("b", "red"))
    note("c")
    assert capsys.readouterr() == ("a b\n", "c\n")


def test_everything_printed_is_cleaned() -> None:
    """Also text that is coloured: the only escapes are ours."""
    stream = Terminal()
    write(stream, "x\x1b[2J", Styled("y\x1b]0;t\x07", "red"))
    assert stream.getvalue() == "x\x1b[31my\x1b[0m\n"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """NO_COLOR and a dumb terminal are respected; a pipe never gets colour."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert takes_colour(Terminal())
    assert not takes_colour(io.StringIO())
    monkeypatch.setenv(variable, value)
    assert not takes_colour(Terminal())


def test_an_empty_piece_has_no_colour() -> None:
    """No escapes around nothing."""
    assert paint(Styled("", "red"), colour=True) == ""


def test_a_pipe_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines in a pipe are as long as they like; a terminal has at least 20 columns."""
    monkeypatch.setenv("COLUMNS", "5")
    assert width_of(io.StringIO()) is None
    assert width_of(Terminal()) == 20
