"""The verbs `work` and `run --store`: refused addresses, signals, and the commands printed next."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testbed.documents import check_document
from uncaged_bundles.errors import UsageError
from uncaged_cli.display.output import runnable_command
from uncaged_cli.entry import EXIT_INTERRUPTED
from uncaged_cli.main import run as run_words
from uncaged_cli.shared_run import commands_in_copy

WORKER = """
import threading
from uncaged_cli.display.worker_events import WorkerEvents
from uncaged_cli.verbs.work import _end_on_signals

stop, events = threading.Event(), WorkerEvents(as_json=True)
_end_on_signals(stop, events)
events.driven("thread")
stop.wait()
events.left("thread", "completed")
threading.Event().wait()
"""


@pytest.mark.parametrize("words", [["run", "calls"], ["work"]])
@pytest.mark.parametrize("address", ["", "/no/such", "user:secret@host/team"])
def test_an_address_without_a_scheme_is_wrong_usage(
    words: list[str], address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also that of a directory, whose threads need no worker; a password is not printed."""
    assert run_words([*words, "--store", address]) == UsageError.exit_code
    err = capsys.readouterr().err
    assert "postgresql://HOST/DATABASE" in err and "secret" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_ends_at_once_at_the_second_signal(number: signal.Signals) -> None:
    """Each of the two signals has its event; the first one leaves the threads to end."""
    with subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        lines = [worker.stdout.readline()]
        worker.send_signal(number)
        lines += [worker.stdout.readline() for _ in range(2)]
        worker.send_signal(number)
        lines += worker.stdout.readlines()
    assert worker.returncode == EXIT_INTERRUPTED
    found = [(one["event"], one.get("threads")) for one in map(json.loads, lines)]
    assert found == [("driven", None), ("stopping", 1), ("left", None), ("interrupted", 0)]
    check_document(["work", "--json"], b"".join(lines).decode())


def test_commands_for_a_thread_are_for_a_copy_of_its_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The address is quoted. A program that is not on PATH is printed with its path, after the
    variable.
    """
    address = "postgresql://h/d?schema=team"
    copy, resume = commands_in_copy(address, ["uncaged-workflow resume ID"])
    assert copy == f"uncaged-workflow store copy '{address}' ./copy"
    assert resume == "UNCAGED_WORKFLOW_HOME=./copy uncaged-workflow resume ID"
    assert list(commands_in_copy(address, [])) == []
    program = str(tmp_path / "a b" / "uncaged-workflow")
    monkeypatch.setattr(sys, "argv", [program])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert runnable_command(copy) == f"'{program}' store copy '{address}' ./copy"
    assert runnable_command(resume) == f"UNCAGED_WORKFLOW_HOME=./copy '{program}' resume ID"
    assert runnable_command("git merge x") == "git merge x"
