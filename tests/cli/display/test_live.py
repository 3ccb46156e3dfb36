"""Live view of a followed thread."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from uncaged_cli.display.live import LiveView, ProgressLine, spell_seconds
from uncaged_cli.display.plain import FollowedRecord
from uncaged_cli.display.progress import EffectProgress
from uncaged_engine.threads.ending import Ending
from uncaged_engine.threads.timeline import OpenStep, Row

STEP = OpenStep(seq=2, label="coder", kind="role", body=None, started_ms=1_000)


def console(width: int = 60, *, colour: bool = True) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=True,
        color_system="standard" if colour else None,
        legacy_windows=False,
        _environ={},
    )


def written(view_console: Console) -> str:
    assert isinstance(view_console.file, io.StringIO)
    return view_console.file.getvalue()


def test_the_moving_line_says_what_is_in_flight_and_for_how_long() -> None:
    """Number, label, seconds, the last word of progress; it never takes more than one line."""
    progress = ProgressLine(lambda: 43_500)
    progress.step = STEP
    progress.progress.add({"text": "tried 14 candidates " * 9})
    target = console(50, colour=False)
    target.print(progress)
    line = written(target)
    assert "2 coder 42 s · tried 14 candidates" in line
    assert line.count("\n") == 1


def test_an_attempt_is_named() -> None:
    """From the second attempt on, the line says which."""
    progress = ProgressLine(lambda: 1_000)
    progress.step = OpenStep(
        seq=2, label="coder", kind="role", body=None, started_ms=1_000, attempt=2
    )
    target = console(colour=False)
    target.print(progress)
    assert "coder (attempt 2) 0 s" in written(target)


def test_rich_markup_in_an_answer_is_text() -> None:
    """Square brackets from an agent are shown as they are, and control sequences are gone."""
    target = console()
    view = LiveView(target, now_ms=lambda: 0)
    with view:
        row = Row(
            mark="done",
            seq="1",
            label="[red]x",
            detail="[link=http://bad]y[/link] \x1b]0;t\x07",
            duration_ms=None,
            by="",
        )
        view.record(FollowedRecord(record={}, row=row, open=None))
    assert "[link=http://bad]y[/link]" in written(target)
    assert "]0;t" not in written(target)


def test_the_view_ends_with_the_last_words_and_a_quiet_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """After the ending the cursor is shown again and nothing moves."""
    target = console()
    with LiveView(target, now_ms=lambda: 5_000) as view:
        view.start({"threadId": "01T", "name": "x", "hash": "H", "sandbox": "bubblewrap"})
        view.record(FollowedRecord(record={}, row=None, open=STEP))
        view.progress({"message": "working"})
        view.end(
            Ending(
                word="limit", exit_code=6, message="10 rounds", branch=None, commands=("resume",)
            ),
            {"tookMs": 600_000, "ranMs": 61_000},
        )
    text = written(target)
    assert "limit" in text
    assert "after 1 min 1 s" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert capsys.readouterr().err == "next: resume\n"


def test_seconds_do_not_flicker() -> None:
    """A running clock has no tenths."""
    assert [spell_seconds(ms) for ms in (-1, 999, 1_999, 61_900)] == [
        "0 s",
        "0 s",
        "1 s",
        "1 min 1 s",
    ]


def test_the_work_in_flight_is_seen() -> None:
    """Time, tokens, money, tool, file and the last words; what is not said again stays, and a new
    tool forgets the file before.
    """
    target = console(120, colour=False)
    view = LiveView(target, now_ms=lambda: 43_500)
    view.record(FollowedRecord(record={}, row=None, open=STEP))
    view.progress(
        {
            "tool": "edit",
            "file": "add.py",
            "usage": {"inputTokens": 1200, "outputTokens": 30, "cost": 0.0125},
        }
    )
    view.progress({"text": "now the \x1b[2J tests"})
    target.print(view._line)
    view.progress({"tool": "run", "text": "pytest"})
    target.print(view._line)
    view.record(FollowedRecord(record={}, row=None, open=STEP))
    target.print(view._line)
    assert [line.partition("coder ")[2].rstrip() for line in written(target).splitlines()] == [
        "42 s · 1,230 tokens, $0.0125 · edit add.py · now the tests",
        "42 s · 1,230 tokens, $0.0125 · run · pytest",
        "42 s",
    ]


@pytest.mark.parametrize(
    ("report", "line"),
    [
        ({"tool": "Edit", "file": "src/add.py"}, "Edit src/add.py"),
        ({"tool": "Read", "file": "/etc/work/hosts"}, "Read /etc/work/hosts"),
        ({"tool": "Write a.py", "file": "a.py"}, "Write a.py"),
        ({"file": "a.py"}, "a.py"),
        ({"text": "```json"}, ""),
        ({"text": "```"}, ""),
    ],
)
def test_what_says_nothing_is_left_out(report: dict[str, object], line: str) -> None:
    """A file that the tool's words name already, and the fence before the data."""
    progress = EffectProgress()
    progress.add(report)
    assert progress.line == line


def test_verbose_unfolds_a_finished_step() -> None:
    """A finished step shows its row, and with `verbose` its content."""
    row = Row(mark="done", seq="2", label="coder", detail="done", duration_ms=1, by="x")
    for verbose in (False, True):
        target = console(colour=False)
        with LiveView(target, verbose=verbose, now_ms=lambda: 0) as view:
            view.record(
                FollowedRecord(record={"content": "All is \x1b[2Jwell."}, row=row, open=None)
            )
        assert ("All is well." in written(target)) is verbose
