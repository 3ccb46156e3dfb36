"""The top of the command: help, completion, what is imported, and how errors end."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from uncaged_cli.catalog import VERBS
from uncaged_cli.main import group, run

Command = Callable[..., subprocess.CompletedProcess[str]]

HEAVY = (
    "anthropic",
    "asyncio",
    "jsonschema",
    "mcp",
    "playwright",
    "psycopg",
    "pydantic",
    "pytest",
    "rich",
    "uncaged_engine.shared_engine",
    "zstandard",
)
"""Libraries that take long to load, and the engine of shared stores."""
COMPLETE = f"""
import sys
from uncaged_cli.main import main
try:
    main()
finally:
    print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
WATCH = f"""
import sys
from uncaged_cli.main import run
code = run(sys.argv[1:])
heavy = [name for name in {HEAVY!r} if name in sys.modules]
verbs = [name for name in sys.modules if name.startswith("uncaged_cli.verbs.")]
print("seen:", code, heavy, verbs, file=sys.stderr)
"""


def watched(words: list[str], environment: dict[str, str], **more: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *words],
        env={**environment, **more},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stderr.rpartition("seen: ")[2].strip()


def test_help_lists_every_verb_and_imports_none(capsys: pytest.CaptureFixture[str]) -> None:
    """The table of verbs is a literal; no line is cut."""
    assert run([]) == 0
    bare = capsys.readouterr().out
    assert run(["--help"]) == 0
    assert capsys.readouterr().out == bare
    assert group.list_commands(click.Context(group)) == list(VERBS)
    for verb, line in VERBS.items():
        assert re.search(rf"^  {verb} +{re.escape(line.split()[0])}", bare, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["--help"], ["list"], ["threads"], ["completion", "bash"], ["ps"], ["history", "--help"]],
)
def test_quick_verbs_import_nothing_heavy(environment: dict[str, str], words: list[str]) -> None:
    """A verb loads its own module and none of the libraries that take long. Of a store in a
    directory, it loads nothing of shared ones.
    """
    verb = [] if words[0].startswith("-") else [f"uncaged_cli.verbs.{words[0]}"]
    assert watched(words, environment) == f"0 [] {verb}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("uncaged-workflow th", "threads"),
        ("uncaged-workflow thread ", "latest"),
        ("uncaged-workflow show e", "echo"),
    ],
)
def test_completion_completes_and_imports_nothing_heavy(
    environment: dict[str, str], flow: Callable[[str], str], line: str, wanted: str
) -> None:
    """Verbs, thread ids and flow names, as a shell asks for them."""
    flow("echo")
    words = line.split(" ")
    asked = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_UNCAGED_WORKFLOW_COMPLETE": "bash_complete",
    }
    done = subprocess.run(
        [sys.executable, "-c", COMPLETE],
        env={**environment, **asked},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert f"plain,{wanted}" in done.stdout.splitlines()
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_ask_this_command(
    capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    """Each shell's script names the command and the variable that it answers to."""
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "uncaged-workflow" in script
    assert f"_UNCAGED_WORKFLOW_COMPLETE={shell}_complete" in script


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["thraeds"], "no verb 'thraeds'; did you mean 'threads'"),
        (["zzz"], "no verb 'zzz'\nsee: uncaged-workflow --help"),
        (["list", "--jsn"], "--jsn"),
        (["completion", "tcsh"], "tcsh"),
        (["run"], "FLOW"),
    ],
)
def test_usage_errors_are_exit_code_2(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    """A usage error is one line in our form, and names where to read more."""
    assert run(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert "--help" in printed.err


@pytest.mark.slow
def test_a_bug_of_ours_is_one_line_and_a_report(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Exit 70, where the report is, and no traceback; the report has it all."""
    program = (
        "import sys, types, click\n"
        "broken = types.ModuleType('uncaged_cli.verbs.list')\n"
        "broken.command = click.Command('list', callback=lambda: {}['no such key'])\n"
        "sys.modules['uncaged_cli.verbs.list'] = broken\n"
        "from uncaged_cli.main import main\n"
        "main()\n"
    )
    (tmp_path / "store" / "run").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, "list"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 70
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    report = Path(done.stderr.strip().rpartition(" ")[2])
    assert report.parent == tmp_path / "store" / "run"
    assert "KeyError: 'no such key'" in report.read_text()


@pytest.mark.slow
def test_an_ascii_stream_is_no_bug(environment: dict[str, str], flow: Callable[[str], str]) -> None:
    """A stream that lacks a character gets its number."""
    flow("echo")
    done = subprocess.run(
        [sys.executable, "-m", "uncaged_cli", "run", "echo", "--prompt", "é…"],
        env={**environment, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "said \\xe9\\u2026" in done.stdout


@pytest.mark.parametrize("words", [["--store", "a"], ["--store=a"], ["--help"], []])
def test_a_worker_is_started_early_only_for_a_run_on_this_machine(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on a shared store, and one that only prints, would start it for nothing."""
    from uncaged_cli.entry import STORE_VARIABLE, start_early
    from uncaged_engine.worker import client

    roused: list[str] = []
    monkeypatch.setattr(client, "rouse_flow", roused.append)
    start_early(["run", "echo", *words])
    assert roused == ([] if words else ["echo"])
    monkeypatch.setenv(STORE_VARIABLE, "postgresql://h/d")
    roused.clear()
    start_early(["run", "echo", *words])
    assert roused == []


def test_ctrl_c_before_the_verb_prints_no_traceback(environment: dict[str, str]) -> None:
    """A command that is interrupted while its modules are imported ends with 130, as later."""
    code = "import os, signal; from uncaged_cli import entry; "
    early = "entry.start_early = lambda words: os.kill(os.getpid(), signal.SIGINT); entry.main()"
    done = subprocess.run(
        [sys.executable, "-c", code + early],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """--version, as everywhere."""
    from uncaged_bundles.version import __version__

    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"uncaged-workflow {__version__}\n"


def test_the_environment_of_these_tests_is_their_own(environment: dict[str, str]) -> None:
    """No test of the command touches the real home directory."""
    assert environment["UNCAGED_WORKFLOW_HOME"] != os.environ.get("UNCAGED_WORKFLOW_HOME")
    assert Path(environment["HOME"]) != Path.home()


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["completion", "bash"], ["list", "--json"]])
def test_a_full_disk_behind_standard_output_is_no_bug(
    environment: dict[str, str], words: list[str]
) -> None:
    """A full disk is reported to the user, and no crash report is written."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "uncaged_cli", *words],
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "error: No space left on device; fix that and try again\n",
    )


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOTDIR, errno.EEXIST, errno.EISDIR])
def test_an_error_of_the_operating_system_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """The file of a missing permission, or of what is no directory, is named."""
    refused = OSError(number, os.strerror(number), "/s/logs")

    def refuse(*_words: object, **_more: object) -> None:
        raise refused

    monkeypatch.setattr(group, "main", refuse)
    assert run(["list"]) == 1
    advice = f"error: {os.strerror(number)} at /s/logs; fix that and try again\n"
    assert capsys.readouterr().err == advice
