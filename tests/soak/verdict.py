"""Verdict of the soak test of a shared store: journals compared with what the world has counted."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from uncaged_bundles.errors import NotFoundError, UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.services.stores import StoreBackend
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.stores.reading import lines_of

from .crowd import ASKED, Crowd
from .workers import Workers

CLOCK_MS = 1000
"""By so much the moment of an intent may be before the one at which its line is written."""

Record = dict[str, Any]


@dataclass
class Verdict:
    """The counts of a judged run; violations are reported to the crowd."""

    crowd: Crowd
    workers: Workers
    counted: Counter[str]
    endings: Counter[str] = field(default_factory=Counter)
    doubts: int = 0
    _stores: Sequence[StoreBackend] = ()

    def judge(self) -> None:
        crowd = self.crowd
        archives = (DirectoryBackend.open(path, create=False) for path in crowd.archives)
        self._stores = (crowd.store, *archives)
        for thread in sorted(crowd.live):
            crowd.report("unfinished", f"{thread} has not ended")
        for sentence in self.workers.ended:
            crowd.report("worker", sentence)
        for thread in crowd.ended:
            try:
                records = self._records(thread)
            except NotFoundError:
                crowd.gone.add(thread)
                if not crowd.has_others:
                    crowd.report("lost", f"{thread} is not in the store")
            except UncagedError as exc:
                crowd.report("lost", f"{thread} cannot be read: {exc}")
            else:
                self._judge_thread(thread, records)
        for store in self._stores:
            for problem in check_store(store, progress=lambda _kind, _count: None).problems:
                crowd.report("store", str(problem))

    def lines(self, cpu_s: tuple[float, float], took_s: float) -> list[str]:
        """Return the report. cpu_s: of the ended child processes, and of this one."""
        crowd, workers = self.crowd, self.workers
        ends = ", ".join(f"{count} {word}" for word, count in sorted(self.endings.items()))
        least, most = crowd.steps
        each = f"{least}" if least == most else f"{least} to {most}"
        kinds = ("lost", "repeated", "unfinished")
        others = sum(crowd.violations.values()) - sum(crowd.violations[kind] for kind in kinds)
        counts = ", ".join(f"{crowd.violations[kind]} {kind}" for kind in kinds)
        return [
            f"threads: {crowd.started} started, {len(crowd.ended)} ended in {took_s:.0f} s ({ends or 'none'}), up to {crowd.most} in"
            f" flight; {each} effects each ({', '.join(sorted(set(crowd.operations)))})",
            f"workers: {len(workers.running)} with {workers.slots} slots, {len(workers.kills_ms)} killed",
            f"effects: {sum(self.counted.values())} counted; {self.doubts} in doubt at a kill and asked for"
            f" ({sum(crowd.redone.values())} redone, {len(crowd.skipped)} skipped)",
            f"violations: {counts}, {others} others",
            f"CPU time: {cpu_s[0]:.0f} s of server and workers, {cpu_s[1]:.0f} s of this process, with {os.cpu_count()} processors",
        ]

    def _records(self, thread: ThreadId) -> list[Record]:
        for store in self._stores:
            with suppress(NotFoundError):
                entry = store.threads.locate(thread)
                lines = lines_of(store.threads, entry.bundle, thread)
                return [json.loads(line) for line in lines]
        raise NotFoundError(thread)

    def _judge_thread(self, thread: ThreadId, records: list[Record]) -> None:
        ending = records[-1].get("end", "none")
        self.endings[ending] += 1
        was_killed = ending == "killed" and thread in self.crowd.killed
        if ending != "completed" and not was_killed:
            self.crowd.report("ending", f"{thread}: {str(records[-1])[:300]}")
        operations = records[0]["parameters"]["prompt"].split()
        for number, operation in enumerate(operations, 1):
            if number <= self.crowd.kept[thread]:
                continue
            of_step = [one for one in records if one.get("seq") == number]
            outcomes = [one for one in of_step if "outcome" in one or "error" in one]
            if len(outcomes) != 1 and not was_killed:
                self.crowd.report("lost", f"{thread}/{number} has {len(outcomes)} outcomes")
            is_counted = operation != "script" or thread not in self.crowd.forked
            if operation in ASKED and is_counted and (outcomes or not was_killed):
                self._judge_effect(f"{thread}/{number} ({operation})", of_step)

    def _judge_effect(self, subject: str, records: list[Record]) -> None:
        """Judge an effect that asks: it was performed once, and once more for each time that a
        person said so; it is in doubt only if its worker was killed in it.
        """
        crowd, key = self.crowd, subject.partition(" ")[0]
        doubts = [one for one in records if one.get("control") == "unknown"]
        self.doubts += len(doubts)
        times, most = self.counted[key], 1 + crowd.redone[key]
        if times > most:
            crowd.report("repeated", f"{subject} was performed {times} times")
        if times == 0 and key not in crowd.skipped:
            crowd.report("lost", f"{subject} was not performed: {str(records[-1:])[:400]}")
        begin_ms = records[0]["timestamp"] - CLOCK_MS if records else 0
        for one in doubts:
            if not self.workers.killed_between(begin_ms, one["timestamp"]):
                crowd.report("asked", f"{subject} was in doubt, and no worker was killed in it")
        if len(doubts) != crowd.redone[key] + (key in crowd.skipped):
            crowd.report(
                "asked", f"{subject} was in doubt {len(doubts)} times, and decided otherwise"
            )
