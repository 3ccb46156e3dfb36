"""The life of one thread in a soak test: a person's commands, at random moments, until it has
ended.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress

from .checks import Judge
from .flows import plan
from .machine import LateError, Machine

ENDED = ("completed", "failed")
MOST_CALM_COMMANDS = 60
LATEST_S = 1.5
LOOK_BELOW_S = 2.0
LOG_LINES = 12


class Story:
    """A thread, driven by one person."""

    def __init__(
        self, machine: Machine, judge: Judge, chance: random.Random, *, traced: bool
    ) -> None:
        self._machine = machine
        self._judge = judge
        self._chance = chance
        self._traced = traced
        self._thread: str | None = None

    def tell(self, ending: threading.Event) -> None:
        """Start the thread and bring it to its end; once *ending* is set, nothing disturbs it any
        more.
        """
        try:
            self._tell(ending)
        except LateError as late:
            self._judge.report_late(self._thread, str(late), LOG_LINES)

    def _tell(self, ending: threading.Event) -> None:
        chance = self._chance
        limit = ["--max-steps", str(chance.randint(1, 4))] if chance.random() < 0.3 else []
        flow = "soak-traced" if self._traced else "soak"
        self._follow(
            "run", flow, "--prompt", json.dumps(plan(chance)), *limit, disturbed=not ending.is_set()
        )
        if self._thread is None:
            return  # it was killed before a thread was accepted
        status, calm = "", 0
        while calm < MOST_CALM_COMMANDS:
            status, problem = self._status(self._thread)
            if status in ENDED:
                break
            calm += ending.is_set()
            self._go_on(status, disturbed=not ending.is_set())
        if status != "completed":
            self._judge.report(f"end: {self._thread} is {status!r}: {problem}")
        self._judge.check_journal(self._thread)
        self._judge.check_children(self._thread, lambda child: self._status(child)[0])

    def _status(self, thread: str) -> tuple[str, str]:
        code, out, err = self._machine.run("thread", "show", thread, "--json", traced=self._traced)
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
            self._follow(
                "resume",
                thread,
                self._decision(thread, self._chance),
                "--max-steps",
                "1000",
                disturbed=disturbed,
            )
        else:
            twice = disturbed and self._chance.random() < 0.3
            second = (
                self._machine.start("resume", thread, "--detach", traced=self._traced)
                if twice
                else None
            )
            complaint = self._follow("resume", thread, "--max-steps", "1000", disturbed=disturbed)
            if second is not None:
                list(second.lines())
                second.complaint()
            if "--redo" in complaint:
                self._follow(
                    "resume",
                    thread,
                    self._decision(thread, self._chance),
                    "--max-steps",
                    "1000",
                    disturbed=disturbed,
                )

    def _decision(self, thread: str, chance: random.Random) -> str:
        """Decide about the open effect, as a person does who looked."""
        choice = chance.choice(("--redo", "--skip"))
        if choice == "--redo":
            self._judge.note_redo(thread)
        return choice

    def _follow(self, *words: str, disturbed: bool) -> str:
        """Run a command that follows the thread, disturb it, and note what it prints; returns what
        it complains of.
        """
        command = self._machine.start(*words, "--json", traced=self._traced)
        deed = (
            self._chance.choice(("kill", "pause", "follower", "nothing", "nothing", "nothing"))
            if disturbed
            else "nothing"
        )
        over = threading.Event()
        helper = random.Random(self._chance.random())  # noqa: S311 - a test's choices
        beside = [
            threading.Timer(
                self._chance.uniform(0.2, LATEST_S),
                self._in_time,
                (lambda: self._disturb(deed, command.process),),
            ),
            threading.Thread(target=self._in_time, args=(lambda: self._help_below(over, helper),)),
        ]
        for one in beside:
            one.start()
        try:
            followed = ""
            for line in command.lines():
                followed = self._hear(json.loads(line), followed)
            return command.complaint()
        finally:
            over.set()
            beside[0].cancel()  # type: ignore[attr-defined]  # the timer
            for one in beside:
                one.join()

    def _hear(self, event: dict[str, object], followed: str) -> str:
        """Note a record that was printed; returns the thread that it is from."""
        record = event.get("record")
        if not isinstance(record, dict):
            return followed
        if event["event"] == "start":
            followed = str(record["threadId"])
            self._thread = self._thread or followed
        self._judge.note(record, followed, traced=self._traced)
        return followed

    def _in_time(self, deed: Callable[[], None]) -> None:
        """Do something beside a command, which is late when this is."""
        with suppress(LateError):
            deed()

    def _disturb(self, deed: str, process: subprocess.Popen[bytes]) -> None:
        if deed == "follower" and not self._traced:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
        elif deed in ("kill", "pause") and self._thread is not None:
            self._machine.run(deed, self._thread, traced=self._traced)

    def _help_below(self, over: threading.Event, chance: random.Random) -> None:
        """Let children go on that a person has to decide about; their parent waits until then."""
        while not over.wait(LOOK_BELOW_S):
            for child in self._judge.children(str(self._thread)):
                if over.is_set() or self._status(child)[0] not in (
                    "unknown",
                    "paused",
                    "killed",
                    "limit",
                ):
                    continue
                _, _, complaint = self._machine.run("resume", child, "--detach")
                if "--redo" in complaint:
                    self._machine.run("resume", child, self._decision(child, chance), "--detach")
