"""Recordings by the command, whose browser a test drives through the session's socket."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from testbed.documents import check_document
from testbed.forked_commands import ForkedCommands
from testbed.processes import end, workers_of
from uncaged_browser.session.address import DEFAULT_SESSION, profile_path
from uncaged_browser.session.client import SessionClient
from uncaged_browser.session.messages import KEPT
from uncaged_bundles.storage.store import Store

READY = "to end it"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Return the JSON that it printed."""
        return json.loads(self.out)


class Commands:
    """The command with a store of its own. environment: of the command. forked: runs it without
    the time that its imports take.
    """

    def __init__(
        self,
        store: Store,
        directory: Path,
        environment: Mapping[str, str],
        forked: ForkedCommands,
    ) -> None:
        self.store = store
        self.directory = directory
        self._forked = forked
        self.environment = {
            **{key: value for key, value in environment.items() if key != "DISPLAY"},
            "UNCAGED_WORKFLOW_HOME": str(store.root),
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "uncaged_cli", *words],
            env=self.environment,
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> CommandOutcome:
        done = self._forked.run(words, env=self.environment, cwd=self.directory, timeout_s=120)
        assert "Traceback" not in done.stdout + done.stderr
        check_document(words, done.stdout)
        return CommandOutcome(code=done.returncode, out=done.stdout, err=done.stderr)

    def record(
        self,
        *words: str,
        act: Callable[[SessionClient], object],
        stop: Callable[[subprocess.Popen[str]], object] | None = None,
    ) -> CommandOutcome:
        """Record what *act* does.

        Args:
            stop: ends the recording; without it, a line does.
        """
        with self.start("record", *words) as process:
            assert process.stdin is not None and process.stderr is not None
            printed = ""
            while READY not in printed and (line := process.stderr.readline()):
                printed += line
            if process.poll() is None:
                with self.client() as client:
                    act(client)
                if stop is not None:
                    stop(process)
            out, err = process.communicate("\n" if stop is None else None, timeout=120)
        assert "Traceback" not in out + printed + err
        return CommandOutcome(code=process.returncode, out=out, err=printed + err)

    def client(self) -> SessionClient:
        return SessionClient.open(self.store, DEFAULT_SESSION)

    def session(self) -> psutil.Process:
        """The process of the browser session."""
        [found] = [
            process
            for process in workers_of(self.store.root)
            if "uncaged_browser.session" in " ".join(process.cmdline()[:6])
        ]
        return found


@contextmanager
def commands_of(
    store: Store, directory: Path, environment: Mapping[str, str], forked: ForkedCommands
) -> Iterator[Commands]:
    """The command for the block; its browser session is ended after it, and the profile removed."""
    yield Commands(store, directory, environment, forked)
    for session in workers_of(store.root):
        end([child.pid for child in session.children(recursive=True)] + [session.pid])
    shutil.rmtree(profile_path(store, DEFAULT_SESSION).parent, ignore_errors=True)


def do(client: SessionClient, name: str, **body: Any) -> Any:
    """Perform an operation in the session's own tabs, as a program in the place of a person."""
    return client.perform(KEPT, {"do": name, **body}, 15)


def interrupt(process: subprocess.Popen[str]) -> None:
    """Press Ctrl-C."""
    process.send_signal(signal.SIGINT)


def order(client: SessionClient) -> None:
    """Order something in the shop."""
    do(client, "fill", target={"label": "Search"}, text="blue lamp", submit=True)
    do(client, "wait", **{"for": "element"}, target={"text": "Order Blue Lamp"})
    do(client, "click", target={"role": "link", "name": "Order Blue Lamp"}, wait=True)
    do(client, "fill", target={"label": "Mail"}, text="ada@shop.test")
    do(client, "fill", target={"label": "Password"}, text="hunter2")
    do(client, "check", target={"label": "Gift wrap"})
    do(client, "click", target={"role": "button", "name": "Confirm order"}, wait=True)
