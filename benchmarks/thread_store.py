"""Store with many threads of several flows, written as the engine would, without running them and
without flushes: `python -m benchmarks.thread_store DIRECTORY [--threads 100000]`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.storage.store import DATA_SUFFIX, Store
from uncaged_engine.api import Engine
from uncaged_engine.journal import chain, lines

from . import flows
from .bench import Bench, Figure
from .table import Row

THREADS = 100_000
FLOWS = (
    *("solve-issue", "review", "summarise", "nightly-report", "fetch-prices", "sync-notes"),
    *("triage", "translate", "check-links", "rename-files", "fill-form", "plan-week"),
)
AGENTS = ("claude", "codex", "gemini", "local", "person")
BORN_MS = 1_767_225_600_000
APART_MS = 60_000
ENDINGS = ("completed",) * 17 + ("unsuccessful", "failed", "killed", "limit")
"""How threads end, equally often; one in forty goes on after that (`OPEN`)."""
OPEN = ("paused", "interrupted", "waiting")
OPEN_EACH = 40
SETTLED_MB = 1 << 20

_ASK = """
import sys, time
from pathlib import Path
begin = time.process_time()
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.threads.filtering import ThreadFilter
from uncaged_engine.threads.paging import count
engine = Engine(Store(root=Path(sys.argv[1])))
imported = time.process_time()
wanted = eval(sys.argv[2])
count(engine.store) if wanted == "count" else engine.page(ThreadFilter(**wanted), limit=50)
print(imported - begin, time.process_time() - imported)
"""
QUESTIONS: Mapping[str, object] = {
    "first page": {},
    "status": {"statuses": ("failed",)},
    "flow": {"flow": "triage"},
    "agent": {"agent": "codex"},
    "cost": {"min_cost": 9.9},
    "duration": {"longer_than_s": 3500},
    "text that nothing has": {"text": "xyzzy"},
    "paused": {"statuses": ("paused",)},
    "counts": "count",
}


def fill(engine: Engine, threads: int = THREADS, *, seed: int = 0) -> list[ThreadId]:
    """Write so many threads into an empty store; return their ids, the oldest first."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    bundles = [
        engine.add(name, flows.source(name, flows.STEPS), accept=lambda _: True).hash
        for name in FLOWS
    ]
    for bundle in bundles:
        (engine.store.logs / bundle).mkdir(mode=0o700, exist_ok=True)
    logs, ids = os.fspath(engine.store.logs), []
    for number in range(threads):
        which = chance.randrange(len(FLOWS))
        bundle = bundles[which]
        thread = new_thread_id(BORN_MS + number * APART_MS, number.to_bytes(10, "big"))
        digest, parts = chain.seed(bundle, thread), []
        for body in _bodies(FLOWS[which], bundle, thread, number, chance):
            line, digest = chain.seal(digest, body)
            parts.append(line)
        with open(f"{logs}/{bundle}/{thread}{DATA_SUFFIX}", "wb") as file:  # noqa: PTH123 - a Path costs more than the file
            file.write(b"".join(parts))
        ids.append(thread)
    _note(engine.store, ids)
    return ids


def _note(store: Store, ids: Sequence[ThreadId]) -> None:
    """Append the starts to the order log, as one write."""
    with (store.logs / "order").open("a", encoding="ascii") as file:
        file.write("".join(f"\n{thread}\n" for thread in ids))


def _bodies(
    name: str, bundle: BundleHash, thread: ThreadId, number: int, chance: random.Random
) -> Iterator[bytes]:
    now = BORN_MS + number * APART_MS
    agent = {"name": chance.choice(AGENTS), "use": "program", "reason": "default", "settings": {}}
    options = {"maxRounds": 10, "maxSteps": 10_000, "threadId": thread, "startedAt": now}
    parameters = {"prompt": f"task {number}", "params": {}, "options": {**options, "seed": number}}
    start = {"engine": "1", "python": "3", "name": name, "hash": bundle, "threadId": thread}
    agents = {"default": agent, "roles": {}}
    yield lines.start({**start, "parameters": parameters, "agents": agents, "sandbox": "none"}, now)
    cost = round(chance.random() * 10, 4)
    usage = {"inputTokens": 1000 + number % 977, "outputTokens": 300, "turns": 3, "cost": cost}
    steps = chance.randrange(1, 4)
    until = now + chance.randrange(1000, 3_600_000)
    for seq in range(1, steps + 1):
        yield lines.intent(seq, b'{"null":{"value":"v"}}', now)
        used = {"usage": usage} if seq == steps else {}
        yield lines.step(seq, {"outcome": f"part {seq} of task {number}", **used}, until)
    if number % OPEN_EACH == OPEN_EACH - 1:
        yield from _opened(OPEN[number // OPEN_EACH % len(OPEN)], steps + 1, until)
    else:
        yield _ended(ENDINGS[number % len(ENDINGS)], usage, number, until)


def _opened(word: str, seq: int, now: int) -> Iterator[bytes]:
    match word:
        case "paused":
            yield lines.control("pause", {}, now)
        case "waiting":
            yield lines.intent(seq, b'{"ask":{"question":"go on?"}}', now)
            yield lines.control("wait", {"seq": seq, "question": "go on?"}, now)
        case _:
            yield lines.intent(seq, b'{"null":{"value":1}}', now)


def _ended(word: str, usage: Mapping[str, object], number: int, now: int) -> bytes:
    fields: dict[str, object] = {"usage": usage}
    match word:
        case "failed":
            error = {"kind": "bundle", "message": f"ValueError: task {number} has no such field"}
            return lines.end("failed", {"error": error, **fields}, now)
        case "killed":
            return lines.end("killed", fields, now)
        case "limit":
            limit = {"limit": "maxCost", "value": 10, "message": "the limit of $10 is reached"}
            return lines.end("limit", {**limit, **fields}, now)
        case _:
            result = {"success": word == "completed", "message": f"task {number} is done"}
            return lines.end("completed", {"result": result, **fields}, now)


def pages(bench: Bench) -> Sequence[Row]:
    """Measure pages of the list, each in a fresh process, by the processor time after the
    imports.
    """
    count = bench.scaled(THREADS)
    with bench.laboratory() as laboratory:
        fill(laboratory.engine, count)
        laboratory.engine.threads()
        return [
            Row(
                figure="pages",
                title=f"a page of {count:,} threads: {title}",
                values=tuple(
                    page_cpu_s(laboratory.engine.store.root, asked)[1] * 1000
                    for _ in bench.rounds(5)
                ),
                unit="ms",
                baseline="of processor time",
                reach=300,
                missed="other work on this machine",
            )
            for title, asked in QUESTIONS.items()
        ]


def page_cpu_s(root: Path, asked: object) -> tuple[float, float]:
    """Return the processor time of a fresh process in seconds: for imports, and for the page."""
    words = [sys.executable, "-c", _ASK, str(root), repr(asked)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    imports_s, page_s = map(float, done.stdout.split())
    return imports_s, page_s


def main(arguments: Sequence[str]) -> int:
    """Fill a store, make its index, and print what pages cost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.thread_store", description=__doc__)
    parser.add_argument("directory", type=Path, help="an empty or missing directory")
    parser.add_argument("--threads", type=int, default=THREADS)
    options = parser.parse_args(arguments)
    engine = Engine(Store.open(options.directory))
    begin = time.monotonic()
    fill(engine, options.threads)
    filled_s = time.monotonic() - begin
    engine.threads()
    indexed_s = time.monotonic() - begin - filled_s
    times = {
        title: round(median(page_cpu_s(options.directory, asked)[1] for _ in range(3)) * 1000)
        for title, asked in QUESTIONS.items()
    }
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // SETTLED_MB
    report = {"filledS": round(filled_s, 1), "indexedS": round(indexed_s, 1), "pagesMs": times}
    sys.stdout.write(json.dumps({**report, "peakMb": memory}, indent=2) + "\n")
    return 0


FIGURES = (Figure(name="pages", measure=pages),)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
