"""The shell over a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.documents import check_document

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]


def piped(
    environment: dict[str, str], directory: Path, data: bytes, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run the shell with these bytes on standard input."""
    done = subprocess.run(
        [sys.executable, "-m", "uncaged_cli", "shell", *options],
        env=environment,
        cwd=directory,
        input=data,
        capture_output=True,
        check=False,
        timeout=120,
    )
    out, errors = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in out + errors
    assert "this is a bug" not in errors
    return subprocess.CompletedProcess(done.args, done.returncode, out, errors)


def test_each_line_is_run_to_its_end(
    prepared: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    """Sentences and verbs run in the order of the lines, also after a failure; the exit code is
    that of the first failure. A verb that reads standard input takes no line.
    """
    lines = (
        b"\xef\xbb\xbf# numbers\r\nrepeat 1\r\n\n@run repeat --param n=2 --prompt -\nsulk now\n"
        b"@conversation new other\nrepeat 3\n@history after 3\n@nonsense\n@exit\nrepeat 4"
    )
    done = piped(environment, tmp_path, lines)
    assert done.returncode == 3
    assert done.stdout.index("{'n': 1}") < done.stdout.index("{'n': 2}")
    assert done.stdout.index("not today") < done.stdout.index("{'n': 3}")
    assert "{'n': 4}" not in done.stdout
    assert "no verb 'nonsense'" in done.stderr
    listed = json.loads(prepared("conversation", "list", "--json").stdout)
    assert {one["name"]: (one["requests"], one["open"]) for one in listed} == {
        "default": (2, 0),
        "other": (1, 0),
    }


def test_json_has_one_event_on_each_line(
    prepared: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    """The events of each sentence are those of `do --json`."""
    assert prepared("list").returncode == 0
    done = piped(environment, tmp_path, b"repeat 1\nrepeat 2\n", "--json")
    check_document(["do", "--json"], done.stdout)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events].count("understood") == 2
    assert [event["result"]["data"]["n"] for event in events if event["event"] == "result"] == [
        1,
        2,
    ]
    verbs = piped(environment, tmp_path, b"@conversation list\n", "--json")
    assert json.loads(verbs.stdout)[0]["requests"] == 2


def test_a_line_that_is_no_request_stops_no_other(
    prepared: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    """Control characters, marks of direction, NUL, bytes that are not UTF-8 and a megabyte in one
    line are refused one by one, each with its reason.
    """
    lines = [
        b"a\x07b",
        "repeat \u202e7".encode(),
        b"\x00",
        b"repeat \xff",
        b"x" * (1 << 20) + b"y" * 70_000,
        b"@show \x00",
        b"@show 'open",
        b"repeat 5",
    ]
    assert prepared("list").returncode == 0
    done = piped(environment, tmp_path, b"\n".join(lines))
    assert done.returncode == 2
    reasons = ["U+0007", "U+202E", "U+0000", "not UTF-8", "longer than 64 KiB", "U+0000", "close"]
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert [reason in line for reason, line in zip(reasons, errors, strict=True)] == [True] * 7
    assert "{'n': 5}" in done.stdout


def test_a_script_runs_from_one_sentence_of_do(prepared: Command, tmp_path: Path) -> None:
    """`do` has the verbs of the shell, but for those that need one; a script cannot run itself."""
    (tmp_path / "s.txt").write_text("repeat 1\n@run ./s.txt\nrepeat 2\n")
    done = prepared("do", "@run s.txt --keep-going")
    assert (done.returncode, "runs itself" in done.stderr) == (2, True)
    assert "{'n': 2}" in done.stdout
    assert prepared("do", "@run none.txt").returncode == 2
    refused = prepared("do", "@exit")
    assert (refused.returncode, "shell" in refused.stderr) == (2, True)
    settings = json.loads(prepared("do", "@config --json").stdout)
    assert settings["settings"]["limits"]["maxRounds"] == 10
    assert settings["exists"] is False
    assert "repeat" in prepared("do", "@explain repeat 7, what's up").stdout
    assert "repeat 1" in prepared("do", "@history").stdout
    assert "@history" in prepared("do", "@help").stdout
    assert "Usage: " in prepared("do", "@help conversation list").stdout
