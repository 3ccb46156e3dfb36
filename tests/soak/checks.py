"""Checks of a soak test, judged by followers' output, the server's requests, the journals on disk
and the tracer's log.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uncaged_engine.journal import lock

from .machine import Machine
from .server import World

CLOSING_S = 3.0
CLOCK_S = 0.002  # a record's timestamp is whole milliseconds
ENOUGH_TRACED = 20
"""Records of traced threads after which the engine without flushes is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A record that a follower printed, and when we read it. traced: the flushes of its journal are
    known.
    """

    thread: str
    record: Mapping[str, Any]
    at_s: float
    traced: bool


@dataclass(slots=True)
class Judge:
    """Collects violations; each is printed when it is found."""

    machine: Machine
    world: World
    place: Path
    violations: list[str] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    allowed: Counter[str] = field(default_factory=Counter)
    parents: dict[str, str] = field(default_factory=dict)
    found: threading.Event = field(default_factory=threading.Event)

    def report(self, violation: str) -> None:
        if violation in self.violations:
            return  # a later check has found it again
        self.violations.append(violation)
        print(f"VIOLATION {violation}", file=sys.stderr, flush=True)  # noqa: T201 - the harness's output
        self.found.set()

    def note(self, record: Mapping[str, Any], thread: str, *, traced: bool) -> None:
        """Remember a record that a follower has just printed."""
        self.seen.append(Seen(thread=thread, record=record, at_s=time.time(), traced=traced))

    def is_found_out(self) -> bool:
        """Return whether an engine without a safeguard has run for long enough: what it lacks was
        reported, or will be from the records that were seen.
        """
        if self.machine.control == "flush":
            return sum(one.traced and "format" not in one.record for one in self.seen) >= (
                ENOUGH_TRACED
            )
        if self.machine.control == "ask":
            self.check_repeats()
        return self.found.is_set()

    def note_redo(self, thread: str) -> None:
        """A person lets the open effect of a thread be performed again."""
        seqs = [record["seq"] for record in self.machine.journal(thread) if "intent" in record]
        if seqs:
            self.allowed[f"{thread}/{seqs[-1]}"] += 1

    def check_request(self, key: str, is_connected: Callable[[], bool]) -> None:
        """Judge a request at the moment at which it arrives: its intent is on disk, and its worker
        holds the journal's lock.
        """
        thread, _, seq = key.partition("/")
        intents = {record["seq"] for record in self.machine.journal(thread) if "intent" in record}
        if not seq or int(seq.partition(".")[0]) not in intents:
            self.report(f"intent: request {key} came before its intent was on disk")
        held = any(lock.is_live(path) for path in self.machine.journals(thread))
        deadline = time.monotonic() + CLOSING_S
        # a worker that was killed just now has lost the lock, and soon its connection, too
        while not held and is_connected():
            if time.monotonic() > deadline:
                self.report(f"lock: request {key} came while its journal was not locked")
                return
            time.sleep(0.02)

    def check_repeats(self) -> None:
        """No effect of rule `ask` was performed more often than a person allowed."""
        ran = self.place / "ran"
        # scripts name themselves by thread and step
        performed = Counter(ran.read_text().split() if ran.exists() else [])
        performed.update(dict(self.world.requests))  # its threads may be adding to it
        for key, times in performed.items():
            if times > 1 + self.allowed[key.partition(".")[0]]:
                self.report(
                    f"ask: {key} was performed {times} times, with {self.allowed[key.partition('.')[0]]} times --redo"
                )

    def check_acknowledged(self) -> None:
        """Every record that a follower printed is in its journal, and was flushed before it was
        printed.
        """
        journals = {
            thread: self.machine.journal(thread) for thread in {one.thread for one in self.seen}
        }
        kept = {
            thread: {_text(record) for record in records} for thread, records in journals.items()
        }
        flushes = defaultdict(list)
        for flush in self.machine.flushes():
            flushes[Path(flush.path).name.partition(".")[0]].append(flush)
        for one in self.seen:
            if _text(one.record) not in kept[one.thread]:
                self.report(f"lost: {one.thread} does not hold {_text(one.record)[:200]}")
            if "format" in one.record:
                # the client that made the journal flushed its start record, under no tracer
                continue
            written_s = one.record["timestamp"] / 1000 - CLOCK_S
            if one.traced and not any(
                flush.begin_s >= written_s and flush.end_s <= one.at_s
                for flush in flushes[one.thread]
            ):
                self.report(
                    f"flush: {one.thread} told a follower what was not flushed: {_text(one.record)[:200]}"
                )

    def check_journal(self, thread: str) -> None:
        """Every journal verifies, and its lines are those of one writer."""
        code, out, err = self.machine.run("verify", thread)
        if code != 0:
            self.report(f"verify: {thread}: {out.strip() or err.strip()}")

    def check_children(self, thread: str, status_of: Callable[[str], str]) -> None:
        """No child of a thread that has ended can go on by itself."""
        for child in self.children(thread):
            if (status := status_of(child)) in ("running", "interrupted"):
                self.report(f"child: {thread} has ended, and its child {child} is {status}")

    def report_late(self, thread: str | None, words: str, lines: int) -> None:
        """Report a command that did not end, with the last lines of its thread and of the threads
        below.
        """
        if self.machine.control is not None:
            return  # cut short
        self.report(f"late: the command did not end: {words}")
        for one in [] if thread is None else (thread, *self.children(thread)):
            for record in self.machine.journal(one)[-lines:]:
                print(f"  {one} {_text(record)[:300]}", file=sys.stderr, flush=True)  # noqa: T201 - the harness's output

    def children(self, thread: str) -> list[str]:
        """Return the threads that a thread started; theirs start none."""
        for one in set(self.machine.threads()) - set(self.parents):
            for start in self.machine.journal(one)[:1]:
                self.parents[one] = start.get("parent", {}).get("threadId", "")
        return sorted(one for one, parent in dict(self.parents).items() if parent == thread)


def _text(record: Mapping[str, Any]) -> str:
    return repr(sorted((key, value) for key, value in record.items() if key != "chain"))
