"""Plain view of a followed thread."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from uncaged_bundles.clean import columns
from uncaged_cli.display.output import Piece
from uncaged_cli.display.plain import FollowedRecord, PlainView, ending_lines, row_pieces
from uncaged_cli.display.step_details import step_details
from uncaged_engine.threads.ending import Ending
from uncaged_engine.threads.timeline import OpenStep, Row

ROW = Row(
    mark="done",
    seq="2",
    label="coder",
    detail="phase-done: " + "word " * 39 + "word",
    duration_ms=3_210,
    by="repair",
)
ENDING = Ending(
    word="completed",
    exit_code=0,
    message="fixed",
    branch="uncaged/x",
    commands=("git merge uncaged/x",),
)


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
    failed = Row(
        mark="failed", seq="1", label="http", detail="timeout: 5 s", duration_ms=None, by=""
    )
    assert "failed: timeout: 5 s" in text_of(row_pieces(failed, width=None))


@pytest.mark.parametrize(("word", "shown"), [("limit", "8.1 s"), ("completed", "11 min")])
def test_a_limit_is_shown_with_the_running_time(word: str, shown: str) -> None:
    """A limit of time does not count the minutes in which the thread had no worker."""
    ending = replace(ENDING, word=word)
    [first, *_rest] = ending_lines(ending, {"tookMs": 660_000, "ranMs": 8_100})
    assert text_of(first) == f"{word} after {shown}: fixed"


def test_the_view_prints_finished_things_only(capsys: pytest.CaptureFixture[str]) -> None:
    """The view prints one line for the thread, one for each row, the result, and the next command
    on stderr.
    """
    stream = io.StringIO()
    with PlainView(stream) as view:
        view.start({"threadId": "01T", "name": "x", "hash": "H", "sandbox": "landlock"})
        view.record(FollowedRecord(record={}, row=None, open=None))
        view.progress({"message": "tried 14"})
        view.record(FollowedRecord(record={}, row=ROW, open=None))
        view.end(ENDING, {"tookMs": 9_000})
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[2:] == ["completed after 9.0 s: fixed", "branch: uncaged/x"]
    assert capsys.readouterr().err == "next: git merge uncaged/x\n"
    assert "\x1b" not in stream.getvalue()


def test_a_failed_try_is_shown_as_it_happens() -> None:
    """A failed attempt is a line of its own, also without --verbose; the trace of a failed bundle
    is below the closing lines.
    """
    stream = io.StringIO()
    step = OpenStep(seq=2, label="llm", kind="llm", body=None, started_ms=0)
    with PlainView(stream) as view:
        view.record(FollowedRecord(record={}, row=None, open=step))
        view.progress(
            {"text": "http://127.0.0.1:1 answered 503: busy; try 2 of 4 in 0.5 s", "try": 2}
        )
        view.end(replace(ENDING, details=("ValueError at line 7", "     7 | raise")), {})
    lines = stream.getvalue().splitlines()
    assert lines[0].split()[:3] == ["2", "llm", "…"]
    assert lines[0].endswith("answered 503: busy; try 2 of 4 in 0.5 s")
    assert lines[2:4] == ["ValueError at line 7", "     7 | raise"]


def test_verbose_says_what_is_done_and_unfolds_what_was() -> None:
    """A line for each tool, file and last words that are new; then the answer, its data and what it
    used up.
    """
    stream = io.StringIO()
    step = OpenStep(seq=2, label="coder", kind="role", body=None, started_ms=0)
    record = {
        "content": "Mended.\n\x1b[2JTwice.",
        "meta": {"status": "done"},
        "usage": {
            "inputTokens": 10,
            "outputTokens": 2,
            "cost": 0.5,
            "turns": 3,
            "seconds": 62,
            "model": "tiny",
        },
    }
    with PlainView(stream, verbose=True) as view:
        view.record(FollowedRecord(record={}, row=None, open=step))
        for report in (
            {"tool": "edit", "file": "a.py"},
            {"usage": {"inputTokens": 5}},
            {"text": "hm"},
            {"text": "hm"},
        ):
            view.progress(report)
        view.record(FollowedRecord(record=record, row=ROW, open=None))
        view.end(ENDING, {"used": {"inputTokens": 10, "outputTokens": 2, "cost": 0.5}})
    lines = [line.strip() for line in stream.getvalue().splitlines()]
    assert [line.split()[-3:] for line in lines[:2]] == [["…", "edit", "a.py"], ["a.py", "·", "hm"]]
    assert lines[3:9] == [
        "Mended.",
        "Twice.",
        "{",
        '"status": "done"',
        "}",
        "used: 12 tokens, $0.50, 3 turns, 1 min 2 s, tiny",
    ]
    assert lines[9:] == ["completed: fixed", "used: 12 tokens, $0.50", "branch: uncaged/x"]


@pytest.mark.parametrize(
    ("record", "lines"),
    [
        ({"outcome": 3}, []),
        ({"content": "", "meta": {}}, []),
        ({"content": ' {"a": 1}', "meta": {"a": 1}}, ["{", '"a": 1', "}"]),
        (
            {"content": "x", "meta": {}, "usage": {"inputTokens": 7, "unpriced": True}},
            ["x", "used: 7 tokens, price unknown"],
        ),
        ({"attempt": 2, "answer": "no block", "problem": "x"}, ["no block"]),
        (
            {"error": {"kind": "agent", "message": "x", "usage": {"inputTokens": 7}}},
            ["used: 7 tokens"],
        ),
        ({"control": "wait", "question": "Which?", "answer": "role"}, []),
    ],
)
def test_a_row_that_says_it_all_has_nothing_behind_it(
    record: dict[str, object], lines: list[str]
) -> None:
    """An unusable answer is shown whole, a failure with what it cost."""
    assert [line.strip() for line in step_details(record)] == lines
