"""What a list of many threads costs, with the status of each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_engine.journal import chain, lines

from . import flows
from .baseline import read_tails_s
from .bench import Bench, Figure
from .laboratory import Laboratory
from .table import Row, ratios

THREADS = 10_000
STEPS = 6
BORN_MS = 1_767_225_600_000


def listing(bench: Bench) -> Sequence[Row]:
    """Threads as a store collects them: most have ended well, some failed or were left in the middle of things."""
    count = bench.scaled(THREADS)
    with bench.laboratory() as laboratory:
        bundle = laboratory.add("steps", flows.source("steps", flows.STEPS))
        fill(laboratory, bundle, count, steps=STEPS)
        pairs = []
        for _ in bench.rounds(7):
            bare = read_tails_s(laboratory.engine.store.logs)
            begin = time.perf_counter()
            found = laboratory.engine.threads()
            pairs.append((time.perf_counter() - begin, bare))
    return (
        Row(
            figure="threads",
            title=f"`threads` over {len(found):,} threads, with status",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(bare for _, bare in pairs) * 1000:.0f} ms list the directory, read 4 KB of each file",
            reach=5.0,
            missed="asking for the lock, checking the last lines and building a summary is Python for every thread",
        ),
    )


def fill(laboratory: Laboratory, bundle: BundleHash, count: int, *, steps: int) -> None:
    """Write journals of `flows.STEPS` as the engine would, without running anything."""
    directory = laboratory.engine.store.logs / bundle
    directory.mkdir(mode=0o700)
    for number in range(count):
        thread = new_thread_id(BORN_MS + number, number.to_bytes(10, "big"))
        path: Path = laboratory.engine.store.data_path(bundle, thread)
        path.write_bytes(_journal(bundle, thread, number, steps))


def _journal(bundle: BundleHash, thread: ThreadId, number: int, steps: int) -> bytes:
    digest = chain.seed(bundle, thread)
    written = []
    for body in _bodies(bundle, thread, number, steps):
        line, digest = chain.seal(digest, body)
        written.append(line)
    return b"".join(written)


def _bodies(bundle: BundleHash, thread: ThreadId, number: int, steps: int) -> Iterator[bytes]:
    now = BORN_MS + number
    options = {"maxRounds": 10, "maxSteps": 10_000, "threadId": thread, "startedAt": now, "seed": number}
    start = {"engine": "1", "python": "3", "name": "steps", "hash": bundle, "threadId": thread}
    yield lines.start(
        {**start, "parameters": {"prompt": str(steps), "params": {}, "options": options}, "agents": {}, "sandbox": "none"}, now
    )
    for seq in range(1, steps + 1):
        yield lines.intent(seq, b'{"null":{"value":"v","times":1000}}', now)
        yield lines.step(seq, {"outcome": "v" * flows.VALUE_BYTES}, now)
    match number % 80:  # one in twenty did not end well
        case 0:
            yield lines.control("pause", {}, now)
        case 20:
            yield lines.intent(steps + 1, b'{"null":{"value":1}}', now)
        case 40:
            yield lines.end("failed", {"error": {"kind": "bundle", "message": "it failed"}}, now)
        case 60:
            yield lines.end("limit", {"limit": "maxSteps", "value": steps, "message": "the limit is reached"}, now)
        case _:
            yield lines.end("completed", {"result": {"success": True, "message": "done"}}, now)


FIGURES = (Figure(name="threads", measure=listing),)
