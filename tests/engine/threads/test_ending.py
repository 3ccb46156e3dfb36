"""Report on a thread that stopped: exit code, message and next commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.api import ThreadSummary
from uncaged_engine.state.states import State
from uncaged_engine.threads.ending import Ending, ending, report_of, repository_elsewhere


def last_seen(status: State, updated_ms: int) -> ThreadSummary:
    return ThreadSummary(
        thread_id=ThreadId("01HX5WBE00AAAAAAAAAAAAAAAA"),
        hash=BundleHash("EYHPV6X8XHTCS"),
        name="x",
        status=status,
        steps=0,
        started_ms=0,
        updated_ms=updated_ms,
        message="",
    )


def end_as(
    status: str,
    end: Mapping[str, object] | None = None,
    *,
    message: str = "",
    last_void: str = "",
    repository: str | None = None,
    wants_fields: bool = False,
    used: Mapping[str, float] | None = None,
    fixable: bool = False,
) -> Ending:
    return ending(
        thread_id="01T",
        status=status,
        end=end,
        message=message,
        last_void=last_void,
        repository=repository,
        wants_fields=wants_fields,
        used=used or {},
        fixable=fixable,
    )


@pytest.mark.parametrize(
    ("status", "last_void", "code"),
    [
        ("completed", "", 0),
        ("failed", "", 3),
        ("killed", "killed", 3),
        ("unknown", "", 3),
        ("corrupt", "", 3),
        ("interrupted", "", 3),
        ("limit", "limit", 6),
        ("paused", "", 8),
        ("waiting", "", 8),
        ("paused", "environment", 4),
    ],
)
def test_each_status_has_its_exit_code(status: str, last_void: str, code: int) -> None:
    """A pause for a missing resource has another exit code than a pause by a person."""
    assert end_as(status, last_void=last_void).exit_code == code


@pytest.mark.parametrize(
    ("status", "last_void", "is_offered"),
    [("failed", "", True), ("paused", "environment", True), ("paused", "", False)],
)
def test_a_fix_is_offered_after_a_failure(status: str, last_void: str, *, is_offered: bool) -> None:
    """And where the machine lacks something; it is the last command."""
    commands = end_as(status, last_void=last_void, fixable=True).commands
    assert (commands[-1] == "uncaged-workflow fix 01T") is is_offered


def test_a_completed_thread_may_say_that_it_did_not_succeed() -> None:
    """`success: false` is exit code 3, and the word says it."""
    last = end_as(
        "completed",
        {
            "end": "completed",
            "result": {"success": False, "message": "no failing test", "data": None},
        },
    )
    assert (last.exit_code, last.word, last.message, last.commands) == (
        3,
        "unsuccessful",
        "no failing test",
        ("uncaged-workflow thread 01T --full",),
    )


def test_success_with_a_branch_names_the_merge() -> None:
    """The branch is read from the result's data; the command names the repository if the caller is
    outside of it.
    """
    end = {
        "end": "completed",
        "result": {"success": True, "message": "fixed", "data": {"branch": "uncaged/x/1"}},
    }
    assert end_as("completed", end).commands == ("git merge uncaged/x/1",)
    assert end_as("completed", end, repository="/r s").commands == (
        "git -C '/r s' merge uncaged/x/1",
    )


@pytest.mark.parametrize(
    "result",
    [None, "text", 3, {"data": "x"}, {"data": {"branch": 7}}, {"data": {"branch": "--help"}}, {}],
)
def test_any_result_is_taken(result: object) -> None:
    """A bundle may return anything; without a branch there is none to merge."""
    last = end_as("completed", {"end": "completed", "result": result})
    assert (last.exit_code, last.branch, last.commands) == (0, None, ())


@pytest.mark.parametrize(
    ("status", "last_void", "words"),
    [
        ("failed", "", ["thread 01T --full"]),
        ("limit", "", ["resume 01T --max-rounds N"]),
        ("unknown", "", ["resume 01T --redo", "resume 01T --skip"]),
        ("killed", "killed", ["resume 01T"]),
        ("interrupted", "", ["resume 01T"]),
        ("paused", "", ["resume 01T"]),
        ("paused", "environment", ["doctor", "resume 01T"]),
        ("corrupt", "", ["verify 01T", "fork 01T --at N"]),
    ],
)
def test_each_status_has_its_next_command(status: str, last_void: str, words: list[str]) -> None:
    """The next useful command is named for every way in which a thread stops."""
    assert end_as(status, last_void=last_void).commands == tuple(
        f"uncaged-workflow {word}" for word in words
    )


@pytest.mark.parametrize(
    ("status", "end", "last_outside", "words"),
    [
        ("failed", {"error": {"kind": "bundle", "message": "x"}}, 3, ["fork 01T --at 2"]),
        ("failed", {"error": {"kind": "bundle", "message": "x"}}, 1, ["fork 01T --at 0"]),
        ("failed", {"error": {"kind": "bundle", "message": "x"}}, 0, ["thread 01T --full"]),
        ("failed", {"error": {"kind": "replay", "message": "x"}}, 3, ["verify 01T"]),
        ("completed", {"result": {"success": False}}, 2, ["thread 01T --full", "fork 01T --at 1"]),
        ("completed", {"result": {"success": False}}, 0, ["thread 01T --full"]),
    ],
)
def test_a_fork_is_offered_where_it_can_come_to_anything_else(
    status: str, end: Mapping[str, object], last_outside: int, words: list[str]
) -> None:
    """A bundle does the same with the same outcomes: without one from outside, and where it does
    not replay, no fork is offered.
    """
    last = ending(
        thread_id="01T",
        status=status,
        end=end,
        message="",
        last_void="",
        repository=None,
        last_outside=last_outside,
    )
    assert last.commands == tuple(f"uncaged-workflow {word}" for word in words)


def test_a_branch_that_is_merged_needs_no_merge() -> None:
    """The branch is still named, and the command is not."""
    end = {"end": "completed", "result": {"success": True, "data": {"branch": "uncaged/x/1"}}}
    last = ending(
        thread_id="01T",
        status="completed",
        end=end,
        message="",
        last_void="",
        repository=None,
        is_merged=True,
    )
    assert (last.branch, last.commands) == ("uncaged/x/1", ())


def test_a_bug_of_ours_is_told_apart_from_an_interruption() -> None:
    """Exit 70, and where the report is; `resume` is still the next command."""
    last = ending(
        thread_id="01T",
        status="interrupted",
        end=None,
        message="",
        last_void="",
        repository=None,
        report=Path("/s/run/r.txt"),
    )
    assert last.exit_code == 70
    assert "/s/run/r.txt" in last.message
    assert last.commands == ("uncaged-workflow resume 01T",)


def test_the_message_comes_from_where_there_is_one() -> None:
    """Result, then error, then what the summary knows."""
    assert end_as("completed", {"result": {"message": "a\x1b[2J"}}).message == "a"
    assert end_as("failed", {"error": {"kind": "raise", "message": "boom"}}).message == "boom"
    assert end_as("limit", {"end": "limit", "message": "10 rounds"}).message == "10 rounds"
    assert end_as("paused", message="no agent").message == "no agent"


def test_a_branch_cannot_carry_another_command() -> None:
    """A name that a bundle chose is quoted for the shell."""
    end = {"result": {"success": True, "data": {"branch": "x; rm -rf ~"}}}
    assert end_as("completed", end).commands == ("git merge 'x; rm -rf ~'",)


@pytest.mark.parametrize(
    ("limit", "value", "option"),
    [
        ("maxRounds", 10, "--max-rounds 20"),
        ("maxSteps", 0, "--max-steps 10"),
        ("maxCost", 0.25, "--max-cost 0.5"),
        ("maxCost", 0.0, "--max-cost 1"),
        ("maxTokens", 1_500_000.0, "--max-tokens 3000000"),
        ("maxSeconds", 90.5, "--max-time 181s"),
    ],
)
def test_a_limit_is_raised_by_its_own_option(limit: str, value: float, option: str) -> None:
    """The end record has the limit and its value; the suggested option can be typed as printed."""
    last = end_as("limit", {"end": "limit", "limit": limit, "value": value, "message": "enough"})
    assert last.commands == (f"uncaged-workflow resume 01T {option}",)


def test_a_question_to_a_role_is_answered_field_by_field() -> None:
    """A text of one word fits no role: the command asks for the fields."""
    assert end_as("waiting", message="?").commands == ("uncaged-workflow answer 01T TEXT",)
    assert end_as("waiting", message="?", wants_fields=True).commands == (
        "uncaged-workflow answer 01T",
    )


@pytest.mark.parametrize(
    ("limit", "value", "used", "option"),
    [
        ("maxCost", 0.2, {"maxCost": 0.75}, "--max-cost 1.5"),
        ("maxCost", 0.2, {"maxCost": 0.2}, "--max-cost 0.4"),
        ("maxCost", 0.0, {}, "--max-cost 1"),
        ("maxTokens", 5000, {"maxTokens": 120_000}, "--max-tokens 240000"),
    ],
)
def test_the_limit_that_is_offered_is_above_what_was_used(
    limit: str, value: float, used: Mapping[str, float], option: str
) -> None:
    """One step may use many times the limit; the suggested limit is high enough to go on."""
    last = end_as("limit", {"end": "limit", "limit": limit, "value": value}, used=used)
    assert last.commands == (f"uncaged-workflow resume 01T {option}",)


@pytest.mark.parametrize(
    ("status", "updated_ms", "found"),
    [("interrupted", 500, True), ("interrupted", 501, False), ("failed", 500, False)],
)
def test_a_report_counts_when_it_is_the_last_thing_that_happened(
    tmp_path: Path, status: State, updated_ms: int, found: bool
) -> None:
    """A report older than the last line is about an interruption that was resumed since."""
    for name in (
        "report-400-01HX5WBE00AAAAAAAAAAAAAAAA.txt",
        "report-500-01HX5WBE00AAAAAAAAAAAAAAAA.txt",
        "report-900-OTHER.txt",
    ):
        (tmp_path / name).write_text("x")
    report = report_of(last_seen(status, updated_ms), tmp_path)
    assert (report is not None) == found
    assert report is None or report.name.startswith("report-500-")


def test_git_is_told_the_repository_only_from_elsewhere(tmp_path: Path) -> None:
    """Inside the repository a plain `git merge` will do."""
    start = {"workspace": {"repository": str(tmp_path)}}
    assert repository_elsewhere(start, tmp_path / "src") is None
    assert repository_elsewhere(start, tmp_path.parent) == str(tmp_path)
    assert repository_elsewhere({}, tmp_path) is None
