"""Cost of replaying past threads against a new version."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from statistics import median

from uncaged_bundles.ids import BundleHash
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.threads.replay_groups import group_checks

from . import flows, listing
from .bench import Bench, Figure
from .laboratory import Laboratory
from .table import Row, ratios

THREADS = 1_000
STEPS = 20


def check(bench: Bench) -> Sequence[Row]:
    """`add --check` and `regress`: every past thread is replayed in one sandbox process, against
    reading the same journals.
    """
    count = bench.scaled(THREADS)
    with bench.laboratory() as laboratory:
        bundle = laboratory.add("steps", flows.source("steps", flows.STEPS))
        listing.fill(laboratory, bundle, count, steps=STEPS, all_ended=True)
        other = read_bundle(flows.source("steps", flows.STEPS, edition=1), KNOWN)
        return (
            _replayed(bench, laboratory, bundle, other, "`add --check`"),
            _replayed(bench, laboratory, bundle, laboratory.engine.bundle("steps"), "`regress`"),
        )


def _replayed(
    bench: Bench, laboratory: Laboratory, past: BundleHash, version: Bundle, verb: str
) -> Row:
    """Measure the replay of all threads with a version. past: the version that they ran."""
    count, rounds = bench.scaled(THREADS), []
    for _ in bench.rounds(7):
        read_s, parsed_s = _reading(laboratory, past)
        begin = time.perf_counter()
        groups = group_checks(laboratory.engine.check("steps", version))
        rounds.append((time.perf_counter() - begin, parsed_s, read_s))
        if [(len(one.checks), one.newest.identical) for one in groups] != [(count, True)]:
            raise ValueError(f"not all of the {count} threads replay alike")
    took, parsed, read = (median(column) * 1000 for column in zip(*rounds, strict=True))
    return Row(
        figure="check",
        title=f"{verb} over {count:,} past threads of {STEPS} steps",
        values=ratios((ours, bare) for ours, bare, _ in rounds),
        unit="×",
        baseline=f"{parsed:.0f} ms read the same files and parse their lines",
        reach=10.0,
        missed="every line's digest is computed, and the bundle is run again for every step",
        remark=f"{took:.0f} ms; {took / read:.0f} times the {read:.0f} ms that their bytes alone take",
    )


def _reading(laboratory: Laboratory, bundle: BundleHash) -> tuple[float, float]:
    """Return the seconds to read the journals of a bundle; the same with every line parsed."""
    directory = laboratory.engine.store.logs / bundle
    begin = time.perf_counter()
    texts = [path.read_bytes() for path in directory.iterdir()]
    read = time.perf_counter()
    for text in texts:
        for line in text.splitlines():
            json.loads(line)
    return read - begin, time.perf_counter() - begin


FIGURES = (Figure(name="check", measure=check),)
