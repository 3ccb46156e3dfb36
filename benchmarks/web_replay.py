"""Cost of a step of a replayed web flow against Playwright alone: time, flushes, processor time."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from uncaged_bundles.records import replace

from .bench import Bench, Figure
from .counts import PATIENT_WORKER, traced_flushes
from .laboratory import Laboratory, timeline
from .pages.long_page import LONG_STEPS
from .pages.site import serving_page
from .table import Row, ratios
from .web_bench import (
    LONG_PAGE,
    BareBrowser,
    bare_browser,
    flow_of,
    session_process,
    web_laboratory,
)

__all__ = ["FIGURES"]

FLOW = "long"
SHORT_STEPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Microseconds of a step: of the flow, of a script that notes each action, of a plain one.
    cpu_ms: processor time of a step in worker, sandbox and session beside that of the script.
    """

    ours: float
    noting: float
    plain: float
    cpu_ms: float


def replay(bench: Bench) -> Sequence[Row]:
    """Run the recorded flow and both scripts in turns."""
    with (
        web_laboratory(bench) as laboratory,
        serving_page(LONG_PAGE) as url,
        bare_browser() as bare,
    ):
        laboratory.add(FLOW, flow_of(bare.record(url), FLOW))
        found = [_round(laboratory, bare, url) for _ in bench.rounds(9)]
    noting, plain = (median(getattr(one, key) for one in found) for key in ("noting", "plain"))
    missed = "each step goes through worker, sandbox, session and driver, four processes that share two CPUs with the browser"
    return (
        Row(
            figure="web-replay",
            title=f"step of a replayed web flow of {LONG_STEPS} steps",
            values=ratios((one.ours, one.noting) for one in found),
            unit="×",
            baseline=f"{noting / 1000:.1f} ms Playwright + heading read + append + fdatasync",
            reach=1.15,
            missed=missed,
        ),
        Row(
            figure="web-replay",
            title="the same against actions alone",
            values=ratios((one.ours, one.plain) for one in found),
            unit="×",
            baseline=f"{plain / 1000:.1f} ms Playwright",
            reach=1.4,
            missed=missed,
        ),
        Row(
            figure="web-replay",
            title="its processor time beside a script's",
            values=tuple(one.cpu_ms for one in found),
            unit="ms",
            baseline="worker, sandbox and session, less the script's own process",
            reach=3,
            missed="a step is read, checked, sealed and sent in three processes",
        ),
    )


def _round(laboratory: Laboratory, bare: BareBrowser, url: str) -> Round:
    noting, script_us = bare.step_us(url, laboratory.directory / "lines.jsonl")
    plain, _ = bare.step_us(url)
    laboratory.run(FLOW, 0)  # the worker may have left meanwhile
    ours = timeline(laboratory.run(FLOW, 0)).per_step_us(1, LONG_STEPS)
    profile = laboratory.profile(FLOW, 0, beside=[session_process(laboratory).pid])
    flow_us = profile.per_step_us(1, LONG_STEPS)
    return Round(ours=ours, noting=noting, plain=plain, cpu_ms=(flow_us - script_us) / 1000)


def flushes(bench: Bench) -> Sequence[Row]:
    """Count the flushes of a short and of a long flow, by strace."""
    title = "flushes per step of a web flow"
    if shutil.which("strace") is None:
        return (
            Row(
                figure="web-flushes",
                title=title,
                unit="",
                baseline="",
                remark="strace is not installed",
            ),
        )
    with web_laboratory(bench) as laboratory, serving_page(LONG_PAGE) as url:
        with bare_browser() as bare:
            recording = bare.record(url)
        laboratory.add(FLOW, flow_of(recording, FLOW))
        laboratory.run(FLOW, 0)  # it starts the session, which would be under strace, too
        counts = []
        for steps in (SHORT_STEPS, LONG_STEPS):
            name = f"steps-{steps}"
            part = replace(recording, steps=recording.steps[:steps])
            bundle = laboratory.add(name, flow_of(part, name))
            counts.append(traced_flushes(laboratory, name, bundle, [0], worker=PATIENT_WORKER))
    return (
        Row(
            figure="web-flushes",
            title=title,
            values=((counts[1] - counts[0]) / (LONG_STEPS - SHORT_STEPS),),
            unit="",
            baseline=f"counted: {counts[0]} for {SHORT_STEPS} steps, {counts[1]} for {LONG_STEPS}",
            reach=1,
            exact=True,
            missed="something else than the step's own line is brought to disk",
        ),
    )


FIGURES = (Figure(name="web-replay", measure=replay), Figure(name="web-flushes", measure=flushes))
