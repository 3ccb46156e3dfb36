"""A followed thread as plain lines."""

from __future__ import annotations

import io

import pytest
from uncaged_cli.display.clean import columns
from uncaged_cli.display.ending import Ending
from uncaged_cli.display.plain import Heard, PlainView, row_pieces
from uncaged_cli.display.screen import Piece
from uncaged_cli.display.story import Row

ROW = Row(mark="done", seq="2", label="coder", detail="phase-done: " + "word " * 39 + "word", duration_ms=3_210, by="repair")
ENDING = Ending(word="completed", exit_code=0, message="fixed", branch="uncaged/x", commands=("git merge uncaged/x",))


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)


def test_a_row_in_a_pipe_is_whole() -> None:
    """Number, label, time, detail, who: nothing is cut."""
    line = text_of(row_pieces(ROW, width=None))
    assert line.startswith("   2  coder         3.2 s  phase-done: word word")
    assert line.endswith("word  [repair]")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_row_fits_the_terminal(width: int) -> None:
    """The detail is cut first, who answered goes when there is no room."""
    assert columns(text_of(row_pieces(ROW, width=width))) <= width


def test_a_failure_says_so_in_words() -> None:
    """Colour is never the only sign."""
    failed = Row(mark="failed", seq="1", label="http", detail="timeout: 5 s", duration_ms=None, by="")
    assert "failed: timeout: 5 s" in text_of(row_pieces(failed, width=None))


def test_the_view_prints_finished_things_only(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for the thread, one for each row, the last words, and the next command on stderr."""
    stream = io.StringIO()
    with PlainView(stream) as view:
        view.opening({"threadId": "01T", "name": "x", "hash": "H", "sandbox": "landlock"})
        view.heard(Heard(record={}, row=None, open=None))
        view.progress({"message": "tried 14"})
        view.heard(Heard(record={}, row=ROW, open=None))
        view.ending(ENDING, {"tookMs": 9_000})
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[2:] == ["completed after 9.0 s: fixed", "branch: uncaged/x"]
    assert capsys.readouterr().err == "next: git merge uncaged/x\n"
    assert "\x1b" not in stream.getvalue()
