"""Threads of the soak test of a shared store: started, looked at, and decided about as a person
does.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from testbed.postgres import PostgresServer
from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import ThreadId, parse_thread_id
from uncaged_cluster.store import PostgresStore
from uncaged_engine.shared_engine import SharedEngine

FLOW = """descriptor = {{
    "contract": 1,
    "name": "soak",
    "description": "Performs effects, most of which a repetition would show.",
    "kind": "task",
    "parameters": {{
        "type": "object",
        "required": ["place"],
        "properties": {{"place": {{"type": "string", "format": "path"}}}},
    }},
    "policy": {{
        "http": {{"hosts": ["127.0.0.1:{port}"], "private": True}},
        "sleep": {{}},
        "script": {{"executables": ["sleep"], "write": ["param:place"]}},
    }},
}}
URL = "http://127.0.0.1:{port}/"
SCRIPT = "sleep 0.{pause}; echo \\"$PARAM_KEY\\" >> \\"$PARAM_PLACE/ran\\"; sleep 0.{pause}"


def script_of(key, place):
    parameters = {{"key": key, "place": place}}
    return {{"script": {{"language": "bash", "body": SCRIPT, "parameters": parameters}}}}


def effect_of(operation, number, key, place):
    return {{
        "post": {{"http": {{"method": "POST", "url": URL, "json": {{"number": number}}}}}},
        "get": {{"http": {{"url": URL}}}},
        "sleep": {{"sleep": {{"seconds": 2}}}},
        "script": script_of(key, place),
    }}[operation]


def run(input, options):
    place = input["params"]["place"]
    for number, operation in enumerate(input["prompt"].split(), 1):
        try:
            yield effect_of(operation, number, f"{{options['threadId']}}/{{number}}", place)
        except EffectError:
            continue
    return {{"success": True, "message": "done"}}
"""
MIXED = (*("post",) * 2, *("get",) * 2, *("sleep",) * 6, "script")
"""The operations of a thread are drawn from these."""
ASKED = ("post", "script")
"""Operations whose handlers ask a person after a death."""


@dataclass
class Crowd:
    """The threads that were started, what became of them, and the violations by kind.

    has_others: whether there are other clients. killed, gone: threads that they killed or removed.
    kept: how many steps a fork has of its source. forked: forks and their sources, whose scripts
    have the same keys. archives: directories into which threads were moved. places: the directory
    with one directory for each thread, into which its scripts write: two scripts never wait for
    the ownership of one. steps: least and most effects of a thread.
    """

    engine: SharedEngine
    store: PostgresStore
    server: PostgresServer
    schema: str
    places: Path
    operations: Sequence[str]
    steps: tuple[int, int]
    chance: random.Random
    has_others: bool = False
    started: int = 0
    most: int = 0
    live: set[ThreadId] = field(default_factory=set)
    ended: list[ThreadId] = field(default_factory=list)
    redone: Counter[str] = field(default_factory=Counter)
    skipped: set[str] = field(default_factory=set)
    killed: set[ThreadId] = field(default_factory=set)
    gone: set[ThreadId] = field(default_factory=set)
    kept: Counter[ThreadId] = field(default_factory=Counter)
    forked: set[ThreadId] = field(default_factory=set)
    archives: set[Path] = field(default_factory=set)
    violations: Counter[str] = field(default_factory=Counter)

    def report(self, kind: str, violation: str) -> None:
        self.violations[kind] += 1
        print(f"VIOLATION {kind}: {violation}", file=sys.stderr, flush=True)  # noqa: T201 - the harness's output

    def start(self) -> None:
        prompt, params = self.plan()
        self.live.add(self.engine.run("soak", prompt=prompt, params=params))
        self.most = max(self.most, len(self.live))

    def plan(self) -> tuple[str, dict[str, str]]:
        """Return prompt and parameters of a new thread."""
        self.started += 1
        place = self.places / str(self.started)
        place.mkdir()
        plan = self.chance.choices(self.operations, k=self.chance.randint(*self.steps))
        return " ".join(plan), {"place": str(place)}

    def look(self) -> None:
        """Note which threads have ended, and decide for those that wait for a person."""
        left = set(self.live) - set(self.store.queue.pending(self.live))
        with self.server.connect(options=f"-c search_path={self.schema}") as rows:
            found = rows.execute(
                "SELECT name, line FROM threads JOIN thread_lines ON log = number"
                " AND position = lines - 1 WHERE name = ANY(%s)",
                [list(left)],
            ).fetchall()
        missing = left - {parse_thread_id(name) for name, _ in found}
        for thread in missing:
            self.live.discard(thread)
            self.gone.add(thread)
            if not self.has_others:
                self.report("lost", f"{thread} is not in the store")
        for name, line in found:
            thread = parse_thread_id(name)
            last = json.loads(bytes(line))
            if "end" in last:
                self.live.discard(thread)
                self.ended.append(thread)
            elif last.get("control") == "unknown":
                self.decide(thread, last["seq"])
            else:
                self.look_closer(thread)

    def look_closer(self, thread: ThreadId) -> None:
        """Look at a thread that was taken up, or left, since the first look."""
        status = "removed"
        with suppress(UncagedError):
            status = self.engine.thread(thread).summary.status
        if status == "paused" and self.has_others:
            with suppress(UncagedError):
                self.engine.resume(thread)
        elif status not in ("running", "unknown", "completed") and not self.has_others:
            self.report("unfinished", f"{thread} is {status} and no worker has it")
            self.live.discard(thread)

    def decide(self, thread: ThreadId, seq: int) -> None:
        """Decide about an effect in doubt: half of them are performed once more."""
        key, redo = f"{thread}/{seq}", self.chance.random() < 0.5
        try:
            self.engine.resume(thread, redo=redo, skip=not redo)
        except UncagedError:  # it was killed, or another client decided
            if not self.has_others:
                raise
            return
        if redo:
            self.redone[key] += 1
        else:
            self.skipped.add(key)

    def scripts_run(self) -> Counter[str]:
        """Return how often the script of each key has written its line."""
        counted: Counter[str] = Counter()
        for file in self.places.glob("*/ran"):
            counted.update(file.read_text().split())
        return counted
