"""Verbs of a shared store: refused addresses, signals, and the commands printed next."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from testbed.documents import check_document
from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_cli.entry import EXIT_INTERRUPTED, STORE_VARIABLE
from uncaged_cli.inputs import stores
from uncaged_cli.inputs.stores import in_same_store, note_shared, on_same_store
from uncaged_cli.main import group
from uncaged_cli.main import run as run_words
from uncaged_cli.runtime import open_engine

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
    """With an event; the first one leaves the threads to end."""
    with subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        lines = [worker.stdout.readline()]
        worker.send_signal(number)
        lines.append(worker.stdout.readline())
        worker.send_signal(number)
        lines += worker.stdout.readlines()
    assert worker.returncode == EXIT_INTERRUPTED
    found = [(one["event"], one.get("threads")) for one in map(json.loads, lines)]
    assert found == [("driven", None), ("left", None), ("interrupted", 0)]
    check_document(["work", "--json"], b"".join(lines).decode())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "uncaged-workflow resume ID",
            "uncaged-workflow resume ID --store 'postgresql://h/d?schema=s'",
        ),
        ("uncaged-workflow store check x", "uncaged-workflow store check x"),
        ("uncaged-workflow doctor", None),
        ("git merge x", "git merge x"),
    ],
)
def test_a_next_step_is_for_the_same_store(command: str, expected: str | None) -> None:
    """It names the store if the verb did; what works on directories alone is not offered."""
    context = click.Context(click.Command("thread"))
    with context:
        assert on_same_store(command) == command
        context.meta[stores._ADDRESS] = "postgresql://h/d?schema=s"
        note_shared(context)
        assert on_same_store(command) == expected


def test_a_message_names_commands_for_the_same_store() -> None:
    """Those that it quotes and that work there, in a form that can be copied into a shell."""
    address = "postgresql://h/d?schema=s"
    context = click.Context(click.Command("run"))
    message = "'uncaged-workflow list' shows all, `uncaged-workflow doctor` looks"
    assert in_same_store(message, context) == message
    context.meta[stores._ADDRESS] = address
    note_shared(context)
    assert in_same_store(message, context) == (
        f"`uncaged-workflow list --store '{address}'` shows all, `uncaged-workflow doctor` looks"
    )


def test_a_verb_that_knows_directories_alone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of another distribution: it would show or change another store than the one that is
    named.
    """
    monkeypatch.setenv("UNCAGED_WORKFLOW_HOME", str(tmp_path))
    monkeypatch.setenv(STORE_VARIABLE, "postgresql://h/d?schema=s")
    with click.Context(click.Command("theirs")), pytest.raises(RefusedError, match=STORE_VARIABLE):
        open_engine()


def test_the_verbs_of_a_shared_store_have_the_option() -> None:
    """The list by which next steps are chosen is that of the verbs themselves."""
    with click.Context(group) as context:
        having = {
            name
            for name in group.list_commands(context)
            if (command := group.get_command(context, name)) is not None
            and any("--store" in option.opts for option in options_of(command))
        }
    assert having == stores.SHARED_VERBS


def options_of(command: click.Command) -> list[click.Parameter]:
    """Return the options of a verb, and those of its own verbs."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return [*command.params, *(one for each in below for one in each.params)]
