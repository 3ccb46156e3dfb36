"""Cost of `threads`, `ps`, completion and housekeeping in a store with many threads."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_engine.journal import chain, lines
from uncaged_engine.threads.housekeeping import archive_threads, prune

from . import flows
from .baseline import pack_files_s, read_tails_s, remove_files_s
from .bench import Bench, Figure
from .laboratory import Laboratory
from .starting import command
from .table import Row, ratios

THREADS = 10_000
MANY = 100_000
ENDED = 60_000
STEPS = 6
BORN_MS = 1_767_225_600_000
COMPLETION = {
    "_UNCAGED_WORKFLOW_COMPLETE": "bash_complete",
    "COMP_WORDS": "uncaged-workflow thread 0",
    "COMP_CWORD": "2",
}
BARE_REACH = {"archive": 2.0, "prune": 3.0}
Deed = Callable[[Laboratory], object]


def listing(bench: Bench) -> Sequence[Row]:
    """Measure lists of threads, most of which ended successfully; the index has the ended ones."""
    pairs, each_us = _listed(bench, bench.scaled(THREADS))
    many_pairs, many_us = _listed(bench, bench.scaled(MANY))
    return (
        Row(
            figure="threads",
            title=f"`threads` over {bench.scaled(THREADS):,} threads, with status",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(bare for _, bare in pairs) * 1000:.0f} ms list the directory, read 4 KB of each file",
            reach=4.0,
            missed="a row, a stamp and a summary are Python for every thread",
        ),
        Row(
            figure="threads",
            title=f"the same over {bench.scaled(MANY):,}, per thread",
            values=ratios(zip(many_us, each_us, strict=True)),
            unit="×",
            baseline=f"{median(each_us):.0f} µs per thread of the row before; {median(bare for _, bare in many_pairs) * 1000:.0f} ms bare",
            reach=1.2,
            missed="its baseline grows as well: the directory is larger, and caches hold less of it",
        ),
    )


def asking(bench: Bench) -> Sequence[Row]:
    """`ps` and a press of TAB, as processes, in a store with ended threads and in one without."""
    count = bench.scaled(ENDED)
    with bench.laboratory() as full, bench.laboratory() as empty:
        for laboratory in (full, empty):
            bundle = laboratory.add("steps", flows.source("steps", flows.STEPS))
            fill(
                laboratory, bundle, count if laboratory is full else 0, steps=STEPS, all_ended=True
            )
            laboratory.engine.threads()
        rows = []
        for title, words, more in (("`ps`", ["ps"], {}), ("one TAB for a thread", [], COMPLETION)):
            for laboratory in (full, empty):
                _command_s(laboratory, words, more)
            pairs = [
                (_command_s(full, words, more), _command_s(empty, words, more))
                for _ in bench.rounds(9)
            ]
            rows.append(
                Row(
                    figure="asking",
                    title=f"{title} beside {count:,} ended threads",
                    values=ratios(pairs),
                    unit="×",
                    baseline=f"{median(bare for _, bare in pairs) * 1000:.0f} ms the same without any",
                    reach=1.5,
                    missed="other work on this machine: no journal of an ended thread is looked at",
                )
            )
    return rows


def housekeeping(bench: Bench) -> Sequence[Row]:
    """`archive` and `prune` of all that has ended, against a look at each file, and against a bare
    loop that leaves the same files. Both make durable what they did.
    """
    rows = []
    verbs: Mapping[str, tuple[Deed, Deed, str]] = {
        "archive": (
            lambda laboratory: archive_threads(laboratory.engine, [], older_than_ms=0),
            lambda laboratory: pack_files_s(laboratory.engine.store.logs),
            "read, compress, write and unlink each file, with two flushes a batch",
        ),
        "prune": (
            lambda laboratory: prune(laboratory.engine, older_than_ms=0),
            lambda laboratory: remove_files_s(laboratory.engine.store.logs),
            "read and unlink each file, with one flush of the directory",
        ),
    }
    for name, (verb, bare_loop, means) in verbs.items():
        rounds = []
        for _ in bench.rounds(3):
            bare_s, looks_s = _done_s(bench, bare_loop)
            rounds.append((_done_s(bench, verb)[0], bare_s, looks_s))
        title = f"`{name}` over {bench.scaled(THREADS):,} threads"
        looks = [(ours, looks) for ours, _, looks in rounds]
        bare = [(ours, bare) for ours, bare, _ in rounds]
        floor = median(bare / looks for _, bare, looks in rounds)
        rows += [
            Row(
                figure="housekeeping",
                title=title,
                values=ratios(looks),
                unit="×",
                baseline=f"{median(one for _, one in looks) * 1000:.0f} ms list the directory, read 4 KB of each file",
                reach=5.0,
                missed=f"the bare loop of the next row takes {floor:.0f} × as long as that, too",
            ),
            Row(
                figure="housekeeping",
                title=f"{title}, against a bare loop",
                values=ratios(bare),
                unit="×",
                baseline=f"{median(one for _, one in bare) * 1000:.0f} ms {means}",
                reach=BARE_REACH[name],
                missed="each thread's end is read and its lock taken, in Python",
            ),
        ]
    return rows


def _done_s(bench: Bench, deed: Deed) -> tuple[float, float]:
    """Return the seconds of *deed* over a new store of many threads, and of a scan of the files
    before it.
    """
    with bench.laboratory() as laboratory:
        bundle = laboratory.add("steps", flows.source("steps", flows.STEPS))
        fill(laboratory, bundle, bench.scaled(THREADS), steps=STEPS)
        os.sync()
        read_tails_s(laboratory.engine.store.logs)
        looks = read_tails_s(laboratory.engine.store.logs)
        begin = time.perf_counter()
        deed(laboratory)
        return time.perf_counter() - begin, looks


def _listed(bench: Bench, count: int) -> tuple[list[tuple[float, float]], list[float]]:
    """Return the seconds of a list and of its baseline per round, and the microseconds per
    thread.
    """
    with bench.laboratory() as laboratory:
        bundle = laboratory.add("steps", flows.source("steps", flows.STEPS))
        fill(laboratory, bundle, count, steps=STEPS)
        laboratory.engine.threads()
        pairs = []
        for _ in bench.rounds(7):
            bare = read_tails_s(laboratory.engine.store.logs)
            begin = time.perf_counter()
            found = laboratory.engine.threads()
            pairs.append((time.perf_counter() - begin, bare))
    return pairs, [ours / len(found) * 1e6 for ours, _ in pairs]


def _command_s(laboratory: Laboratory, words: Sequence[str], more: Mapping[str, str]) -> float:
    environment = {**os.environ, "UNCAGED_WORKFLOW_HOME": str(laboratory.engine.store.root), **more}
    begin = time.perf_counter()
    subprocess.run([*command(), *words], check=True, capture_output=True, env=environment)
    return time.perf_counter() - begin


def fill(
    laboratory: Laboratory, bundle: BundleHash, count: int, *, steps: int, all_ended: bool = False
) -> None:
    """Write journals of `flows.STEPS` as the engine would, without running a thread."""
    directory = laboratory.engine.store.logs / bundle
    directory.mkdir(mode=0o700)
    for number in range(count):
        thread = new_thread_id(BORN_MS + number, number.to_bytes(10, "big"))
        path: Path = laboratory.engine.store.data_path(bundle, thread)
        sealed, _ = sealed_lines(bundle, thread, 1 if all_ended else number, steps)
        path.write_bytes(b"".join(sealed))


def sealed_lines(
    bundle: BundleHash, thread: ThreadId, number: int, steps: int
) -> tuple[list[bytes], bytes]:
    """Return the lines of a thread of `flows.STEPS`, and the digest of the last one. number:
    decides how the thread ended.
    """
    digest = chain.seed(bundle, thread)
    written = []
    for body in _bodies(bundle, thread, number, steps):
        line, digest = chain.seal(digest, body)
        written.append(line)
    return written, digest


def _bodies(bundle: BundleHash, thread: ThreadId, number: int, steps: int) -> Iterator[bytes]:
    now = BORN_MS + number
    options = {
        "maxRounds": 10,
        "maxSteps": 10_000,
        "threadId": thread,
        "startedAt": now,
        "seed": number,
    }
    start = {"engine": "1", "python": "3", "name": "steps", "hash": bundle, "threadId": thread}
    yield lines.start(
        {
            **start,
            "parameters": {"prompt": str(steps), "params": {}, "options": options},
            "agents": {},
            "sandbox": "none",
        },
        now,
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
            yield lines.end(
                "limit",
                {"limit": "maxSteps", "value": steps, "message": "the limit is reached"},
                now,
            )
        case _:
            yield lines.end("completed", {"result": {"success": True, "message": "done"}}, now)


FIGURES = (
    Figure(name="threads", measure=listing),
    Figure(name="asking", measure=asking),
    Figure(name="housekeeping", measure=housekeeping),
)
