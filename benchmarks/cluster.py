"""A store in PostgreSQL and its workers, against bare DBOS on the same server."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from statistics import median

from uncaged_bundles.ids import ThreadId

from . import flows
from .bench import Bench, Figure
from .cluster_site import STAYS, STEPS, WAITS_200, ClusterSite, cluster_site
from .table import Row, ratios

WARM_UP = 20
STEPS_EACH = 20
STEP_LINES = 2
"""Lines of an effect in the journal."""
FEW, MORE = 100, 1100
BUSY = "a worker adds a process for the bundle and a transaction for the journal to the two of a step of DBOS; on a busy machine each waits"


def effects(bench: Bench) -> Sequence[Row]:
    """Measure one thread of a worker with one slot."""
    count = bench.scaled(500)
    pairs = []
    with bench.directory() as directory, cluster_site(directory) as site, site.worker(1):
        _thread_ms(site, WARM_UP)
        for _ in bench.rounds(7):
            bare = site.bare("steps", count)
            pairs.append((_thread_ms(site, count), bare))
    return (
        Row(
            figure="cluster-effects",
            title=f"effect of {flows.VALUE_BYTES:,} bytes on the cluster, one worker",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(bare for _, bare in pairs):.1f} ms a bare `DBOS.step` with that result",
            reach=1.5,
            missed=BUSY,
        ),
    )


def workers(bench: Bench) -> Sequence[Row]:
    """Measure effects that wait, on one worker and on four, two slots each."""
    threads, waits = 16, bench.scaled(20)
    pairs = []
    with bench.directory() as directory, cluster_site(directory) as site:
        for _ in bench.rounds(3):
            spent = []
            for number in (1, 4):
                with site.workers(number, 2):
                    spent.append(_crowd_ms(site, WAITS_200, threads, waits))
            pairs.append((spent[0], spent[1]))
    return (
        Row(
            figure="cluster-workers",
            title="4 workers with 2 slots against 1, effects that wait 200 ms",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(one for one, _ in pairs) / 1000:.1f} s {threads} threads of {waits} effects on one worker",
            reach=3.6,
            at_least=True,
            missed="four workers share these processors, and each of them starts a process for the bundle",
        ),
    )


def threads(bench: Bench) -> Sequence[Row]:
    """Measure threads per second of one worker with four slots, all of them queued before."""
    count, slots = bench.scaled(100), 4
    pairs = []
    with bench.directory() as directory, cluster_site(directory) as site:
        for _ in bench.rounds(5):
            bare = site.bare("workflows", count, STEPS_EACH, slots)
            started = [site.start(STEPS, STEPS_EACH) for _ in range(count)]
            with site.worker(slots):
                site.wait(started)
            pairs.append((bare, _span_ms(site, started)))
    return (
        Row(
            figure="cluster-threads",
            title=f"threads of {STEPS_EACH} effects per second, one worker with {slots} slots",
            values=ratios(pairs),
            unit="×",
            baseline=f"{count / median(bare for bare, _ in pairs) * 1000:.1f} bare workflows of {STEPS_EACH} steps per second",
            reach=0.6,
            at_least=True,
            missed=BUSY,
        ),
    )


def rows(bench: Bench) -> Sequence[Row]:
    """Count rows and bytes of an effect: what a longer thread adds."""
    schema_of_bare = ["bare"]
    with bench.directory() as directory, cluster_site(directory) as site, site.worker(1):
        schemas = [site.schema, f"{site.schema}_dbos"]
        ours, bare, journals = [site.size(schemas)], [], []
        for count in (FEW, MORE):
            site.wait([thread := site.start(STEPS, count)])
            ours.append(site.size(schemas))
            journals.append(sum(map(len, site.lines(thread))))
            site.bare("fill", count)
            bare.append(site.size(schema_of_bare)[1])
    # what a thread has besides its effects is in both of them
    added_rows = (ours[2][0] - ours[1][0]) - (ours[1][0] - ours[0][0])
    line_bytes = (journals[1] - journals[0]) / (MORE - FEW)
    bare_bytes = (bare[1] - bare[0]) / MORE
    return (
        Row(
            figure="cluster-rows",
            title="rows per effect",
            values=(added_rows / (MORE - FEW),),
            unit="",
            baseline=f"counted: a thread of {MORE:,} effects against one of {FEW}",
            reach=3,
            missed="something else than two lines and a step is written for each effect",
        ),
        Row(
            figure="cluster-rows",
            title="bytes per effect",
            values=((ours[2][1] - ours[1][1]) / MORE,),
            unit="B",
            baseline=f"`pg_total_relation_size`; bare DBOS {bare_bytes:.0f} B, journal {line_bytes:.0f} B",
            reach=bare_bytes + 1.2 * line_bytes,
            missed="the tables or their indexes have grown",
        ),
    )


def takeovers(bench: Bench) -> Sequence[Row]:
    """Measure how long a thread is without a worker after a death, and after a freeze."""
    killed: list[float] = []
    frozen: list[float] = []
    with bench.directory() as directory, cluster_site(directory) as site:
        for _ in bench.rounds(5):
            killed.append(_takeover_s(site, signal.SIGKILL))
        if not bench.quick:
            frozen.append(_takeover_s(site, signal.SIGSTOP))
    return (
        Row(
            figure="cluster-takeovers",
            title="a thread is driven again after SIGKILL of its worker",
            values=tuple(killed),
            unit="s",
            baseline="workers look for dead ones every second",
            reach=10.0,
            missed="another process held both processors",
        ),
        Row(
            figure="cluster-takeovers",
            title="the same after SIGSTOP",
            values=tuple(frozen),
            unit="s",
            baseline="a session without a statement for 60 s is a frozen one's",
            reach=90.0,
            missed="another process held both processors",
            remark="" if frozen else "takes more than a minute: not with --quick",
        ),
    )


def _takeover_s(site: ClusterSite, by: signal.Signals) -> float:
    """Return the seconds from a signal to a worker until another one drives its thread."""
    with site.worker(1) as first:
        thread = site.start(STAYS, 0)
        first.wait_for_thread(thread)
        with site.worker(1) as second:
            begin = time.monotonic()
            os.kill(first.process.pid, by)
            second.wait_for_thread(thread)
            spent_s = time.monotonic() - begin
    site.engine.kill(thread)
    return spent_s


def _thread_ms(site: ClusterSite, count: int) -> float:
    """Return the milliseconds of an effect in a thread, after some."""
    thread = site.start(STEPS, count + WARM_UP)
    site.wait([thread])
    [stamps] = site.stamps([thread])
    begin = stamps[1 + STEP_LINES * WARM_UP]
    return (stamps[STEP_LINES * (count + WARM_UP)] - begin) / count


def _crowd_ms(site: ClusterSite, flow: str, threads: int, steps: int) -> float:
    started = [site.start(flow, steps) for _ in range(threads)]
    site.wait(started)
    return _span_ms(site, started)


def _span_ms(site: ClusterSite, started: Sequence[ThreadId]) -> float:
    """Return the milliseconds from the first intent to the last line of some threads."""
    stamps = site.stamps(started)
    return max(one[-1] for one in stamps) - min(one[1] for one in stamps)


FIGURES = (
    Figure(name="cluster-effects", measure=effects),
    Figure(name="cluster-workers", measure=workers),
    Figure(name="cluster-threads", measure=threads),
    Figure(name="cluster-rows", measure=rows),
    Figure(name="cluster-takeovers", measure=takeovers),
)
