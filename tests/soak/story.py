"""The life of one thread in a soak test: a person's commands, at random moments, until it has ended."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
from contextlib import suppress

from .checks import Judge
from .flows import plan
from .machine import Machine

ENDED = ("completed", "failed")
MOST_COMMANDS = 60
LATEST_S = 1.5


class Story:
    """One thread, driven by one person."""

    def __init__(self, machine: Machine, judge: Judge, chance: random.Random, *, traced: bool) -> None:
        self._machine = machine
        self._judge = judge
        self._chance = chance
        self._traced = traced
        self._thread: str | None = None
        self._followed = ""

    def tell(self, ending: threading.Event) -> None:
        """Start the thread and bring it to its end; once *ending* is set, nothing disturbs it any more."""
        chance = self._chance
        limit = ["--max-steps", str(chance.randint(1, 4))] if chance.random() < 0.3 else []
        flow = "soak-traced" if self._traced else "soak"
        self._follow("run", flow, "--prompt", json.dumps(plan(chance)), *limit, disturbed=not ending.is_set())
        if self._thread is None:
            return  # it was killed before a thread was accepted
        status = ""
        for _ in range(MOST_COMMANDS):
            status, problem = self._status()
            if status in ENDED:
                break
            self._go_on(status, disturbed=not ending.is_set())
        if status != "completed":
            self._judge.report(f"end: {self._thread} is {status!r}: {problem}")
        self._judge.check_journal(self._thread)

    def _status(self) -> tuple[str, str]:
        code, out, err = self._machine.run("thread", "show", str(self._thread), "--json", traced=self._traced)
        if code not in (0, 3, 6, 8):
            return "unreadable", err
        document = json.loads(out)
        return document["status"], str(document.get("message") or document.get("problem"))

    def _go_on(self, status: str, *, disturbed: bool) -> None:
        thread = str(self._thread)
        if status == "running":
            self._follow("thread", "show", "-f", thread, disturbed=disturbed)
        elif status == "waiting":
            self._follow("answer", thread, "42", disturbed=disturbed)
        elif status == "unknown":
            self._decide(disturbed=disturbed)
        else:
            twice = disturbed and self._chance.random() < 0.3
            second = self._machine.start("resume", thread, "--detach", traced=self._traced) if twice else None
            complaint = self._follow("resume", thread, "--max-steps", "1000", disturbed=disturbed)
            if second is not None:
                list(second.lines())
                second.complaint()
            if "--redo" in complaint:
                self._decide(disturbed=disturbed)

    def _decide(self, *, disturbed: bool) -> None:
        """Say what the open effect comes to, as a person does who looked."""
        thread = str(self._thread)
        for open_thread in (thread, *self._judge.children(thread)):
            choice = self._chance.choice(("--redo", "--skip"))
            if choice == "--redo":
                self._judge.note_redo(open_thread)
            self._follow("resume", open_thread, choice, "--max-steps", "1000", disturbed=disturbed)

    def _follow(self, *words: str, disturbed: bool) -> str:
        """Run a command that follows the thread, disturb it, and note what it prints; returns what it complains of."""
        command = self._machine.start(*words, "--json", traced=self._traced)
        deed = self._chance.choice(("kill", "pause", "follower", "nothing", "nothing", "nothing")) if disturbed else "nothing"
        timer = threading.Timer(self._chance.uniform(0.2, LATEST_S), self._disturb, (deed, command.process))
        timer.start()
        for line in command.lines():
            self._hear(json.loads(line))
        timer.cancel()
        timer.join()
        return command.complaint()

    def _hear(self, event: dict[str, object]) -> None:
        record = event.get("record")
        if not isinstance(record, dict):
            return
        if event["event"] == "start":
            self._followed = record["threadId"]
            self._thread = self._thread or self._followed
        self._judge.note(record, self._followed, traced=self._traced)

    def _disturb(self, deed: str, process: subprocess.Popen[bytes]) -> None:
        if deed == "follower" and not self._traced:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
        elif deed in ("kill", "pause") and self._thread is not None:
            self._machine.run(deed, self._thread, traced=self._traced)
