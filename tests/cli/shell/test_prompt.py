"""The shell on a real (pseudo) terminal."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import source
from testbed.terminal import InteractiveCommand

from ..conftest import register_flow

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
CTRL_C, CTRL_D, CTRL_R, TAB = "\x03", "\x04", "\x12", "\t"


@pytest.fixture
def shell(
    prepared: Command, environment: dict[str, str], tmp_path: Path
) -> Iterator[InteractiveCommand]:
    """A shell at its prompt."""
    assert prepared("conversation", "list").returncode == 0
    with InteractiveCommand(["shell"], environment, tmp_path) as terminal:
        terminal.expect("default>")
        yield terminal


def results(command: Command, conversation: str = "default") -> list[Any]:
    shown = json.loads(command("conversation", "show", conversation, "--json").stdout)
    return [one["result"] for one in shown["records"] if "result" in one]


def test_ctrl_c_cancels_the_running_request_alone(
    prepared: Command, shell: InteractiveCommand
) -> None:
    """A second sentence waits while the first runs, as another process sees. Ctrl-C kills the
    thread of the first, the second runs, and the shell goes on.
    """
    shell.type("be slow\r")
    shell.expect("thread ")
    shell.expect("running: be slow")
    shell.type("repeat 7\r")
    shell.expect("waiting for 1 request before this one")
    shell.expect("queued: 1")
    [listed] = json.loads(prepared("conversation", "list", "--json").stdout)
    assert (listed["open"], listed["inUse"]) == (2, True)
    shell.type("unfinished" + CTRL_C)  # a line that was begun is cleared, and nothing else
    shell.type(CTRL_C)
    shell.expect("cancelling: be slow")
    shell.expect("killed after")
    shell.expect("completed after")
    shell.type("repeat 8\r")
    shell.expect("completed after")
    shell.expect("cost: $0.00")
    shell.type(CTRL_D)
    assert shell.end() == 0
    assert [one["status"] for one in results(prepared)] == ["cancelled", "completed", "completed"]
    assert "Traceback" not in shell.seen


def test_ctrl_c_cancels_what_reason_works_on(
    prepared: Command, environment: dict[str, str], shell: InteractiveCommand
) -> None:
    """`@reason` is a request of the conversation, as a sentence is: Ctrl-C kills its thread, and
    later sentences know of it.
    """
    slow = '    yield {"null": {"sleep_s": 600}}\n'
    register_flow(environment, "reason", source("reason", slow, policy={"null": {}}))
    shell.type("@reason put 'it right\r")
    shell.expect("understood: reason")
    shell.expect("running: put 'it right")
    shell.type(CTRL_C)
    shell.expect("cancelling: put 'it right")
    shell.expect("killed after")
    shell.type("repeat 8\r")
    shell.expect("completed after")
    shell.type(CTRL_D)
    assert shell.end() == 0
    assert [one["status"] for one in results(prepared)] == ["cancelled", "completed"]
    listed = json.loads(prepared("threads", "--json").stdout)
    [thread] = [one for one in listed if one["flow"] == "reason"]
    shown = json.loads(prepared("thread", "show", thread["threadId"], "--json").stdout)
    assert (thread["status"], shown["start"]["parameters"]["prompt"]) == ("killed", "put 'it right")


def test_a_script_stops_at_its_first_failure(
    prepared: Command, shell: InteractiveCommand, tmp_path: Path
) -> None:
    """`@run FILE` runs the requests of a file; with --keep-going also those after a failure."""
    (tmp_path / "three.txt").write_text("# numbers\nrepeat 1\n\nsulk now\nrepeat 2\n")
    shell.type("@run three.txt\r")
    shell.expect("> repeat 1")
    shell.expect("not today")
    shell.expect("three.txt:4: stopped; this request ended with exit code 3")
    assert [one["success"] for one in results(prepared)] == [True, False]
    shell.type("@run three.txt --keep-going\r")
    shell.expect("> repeat 2")
    shell.expect("completed after")
    shell.type("@run repeat --param n=9\r")
    shell.expect("'n': 9")
    shell.expect("default>")
    shell.type("@exit\r")
    assert shell.end() == 0
    assert [one["success"] for one in results(prepared)] == [True, False, True, False, True]


def test_the_shell_changes_its_conversation(prepared: Command, shell: InteractiveCommand) -> None:
    """`@conversation switch`, `new`, `rename` and `delete` act on the shell's conversation, and a
    thread of the former one goes on.
    """
    shell.type("be slow\r")
    shell.expect("running: be slow")
    shell.type("@conversation new work\r")
    shell.expect("work>")
    shell.type("repeat 3\r")
    shell.expect("completed after")
    shell.type("@conversation rename office\r")
    shell.expect("office>")
    while not results(prepared, "office"):  # the thread's end is printed before it is in the log
        pass
    shell.type("@history after 3\r")
    shell.expect("completed: {'n': 3}")
    shell.type("@conversation delete office\r")
    shell.expect("[y/N]")
    shell.type("y\r")
    shell.expect("deleted")
    shell.expect("default>")
    shell.expect("running: be slow")
    shell.type("@conversation delete default --yes\r")
    shell.expect("requests of this shell run in that conversation")
    shell.expect("default>")
    shell.type(CTRL_D)
    shell.expect("'be slow' goes on in its worker")
    assert shell.end() == 0
    [thread] = json.loads(prepared("threads", "--status", "running", "--json").stdout)
    assert prepared("kill", thread["threadId"]).returncode == 0


def test_questions_are_asked_between_two_prompts(
    prepared: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    """A marked flow asks before it runs: an empty answer and Ctrl-C run nothing, and a yes runs
    it.
    """
    assert prepared("enable", "repeat", "--confirm").returncode == 0
    with InteractiveCommand(["shell"], environment, tmp_path) as shell:
        shell.expect("default>")
        shell.type("repeat 5\r")
        shell.expect("Run repeat? (run, edit, cancel) [cancel]:")
        shell.type("\r")
        shell.expect("cancelled; nothing was run")
        shell.type("repeat 6\r")
        shell.expect("[cancel]:")
        shell.press_until(CTRL_C, "cancelled; nothing was run")
        shell.type("repeat 7\r")
        shell.expect("[cancel]:")
        shell.type("run\r")
        shell.expect("completed after")
        shell.type(CTRL_D)
        assert shell.end() == 0
    assert [one["status"] for one in results(prepared)] == ["cancelled", "cancelled", "completed"]


def test_lines_are_completed_and_kept(
    prepared: Command, environment: dict[str, str], tmp_path: Path, shell: InteractiveCommand
) -> None:
    """Words of patterns, verbs, options and thread ids are offered as they are typed. Ctrl-R finds
    a line of a former shell in a private file, which has no line that begins with a space.
    """
    shell.type("rep")
    shell.expect("repeat")
    shell.type(TAB + " 4\r")
    shell.expect("completed after")
    [thread] = json.loads(prepared("threads", "--json").stdout)
    shell.type("@thr")
    shell.expect("@threads")
    shell.type("eads --sta")
    shell.expect("--status")
    shell.type(CTRL_C + "@kill ")
    shell.expect(thread["threadId"])
    shell.type(CTRL_C + " @config\r")
    shell.expect("maxRounds")
    shell.expect("default>")
    shell.type(CTRL_D)
    assert shell.end() == 0
    kept = tmp_path / "store" / "shell-history.jsonl"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [json.loads(line) for line in kept.read_text().splitlines()] == ["repeat 4"]
    with InteractiveCommand(["shell"], environment, tmp_path) as second:
        second.expect("default>")
        second.type(CTRL_R + "peat\r\r")
        second.expect("'n': 4")
        second.type(CTRL_D)
        assert second.end() == 0
