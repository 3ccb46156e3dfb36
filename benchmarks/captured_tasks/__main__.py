"""Command line of the measurement: `python -m benchmarks.captured_tasks [OPTION ...]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from ..outside.measuring import measure, options_parser, report
from ..outside.results import Document
from .attempt import attempt
from .tasks import FAMILIES, sampled

CAPTURED_REACH = 36


def main(arguments: Sequence[str]) -> int:
    """Return 0 if each captured flow was right, and no task was at fault."""
    options = options_parser("python -m benchmarks.captured_tasks", __doc__).parse_args(arguments)
    rules = {rule.name: rule for rule in sampled(quick=options.quick, only=options.only)}

    def tried(name: str, root: Path) -> Document:
        return attempt(rules[name], options.seed, root).document()

    found = measure(list(rules), options, tried, line_of)
    totals = totals_of(found)
    report(found, totals, table_of(found, totals), as_json=options.json)
    return 0 if not totals["faults"] and totals["right"] == totals["captured"] else 1


def verdict_of(one: Document) -> str:
    """Return the result of a task in words."""
    fault = one.get("fault") or one.get("first")
    if fault:
        return f"the task is at fault: {fault}"
    if not one["captured"]:
        return f"refused: {one['refused']}"
    wrong = [text for text in one["wrong"] if text]
    model = [f"{one['requests']} requests to a model"] if one["requests"] else []
    verdict = "right" if one["right"] else f"wrong: {'; '.join([*wrong, *model])}"
    return f"{one['proof']}, {verdict}"


def line_of(one: Document) -> str:
    times = ""
    if one.get("captured"):
        times = (
            f" ({one['first_wall_s']:.1f} s, {one['first_cpu_s']:.1f} s of CPU; "
            f"replayed {one['replay_wall_s']:.1f} s, {one['replay_cpu_s']:.1f} s)"
        )
    return f"{one['name']}: {verdict_of(one)}{times}"


def totals_of(found: Sequence[Document]) -> dict[str, Any]:
    """Return counts, and the medians of the replay's times beside the first run's."""
    whole = [one for one in found if one.get("captured")]
    replayed = [one for one in whole if one["right"]]
    return {
        "tasks": len(found),
        "faults": sum(bool(one.get("fault") or one.get("first")) for one in found),
        "captured": len(whole),
        "proved": sum(one["proof"] == "proved" for one in whole),
        "right": len(replayed),
        "wallRatio": _median([one["replay_wall_s"] / one["first_wall_s"] for one in replayed]),
        "cpuRatio": _median(
            [one["replay_cpu_s"] / one["first_cpu_s"] for one in replayed if one["first_cpu_s"]]
        ),
    }


def table_of(found: Sequence[Document], totals: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    lines = [
        "| family | tasks | captured | proved | right on both other sets |",
        "|---|---|---|---|---|",
    ]
    for family in FAMILIES:
        part = totals_of([one for one in found if one["name"].startswith(f"{family}-")])
        counts = (part[key] for key in ("tasks", "captured", "proved", "right"))
        lines.append(f"| {family} | {' | '.join(map(str, counts))} |")
    counts = (totals[key] for key in ("tasks", "captured", "proved", "right"))
    lines.append(f"| all | {' | '.join(map(str, counts))} |")
    lines.append(
        f"\nReach: {CAPTURED_REACH} of 40 captured, every captured one right. Replay against first "
        f"run, medians: {totals['wallRatio']:.2f} × of the time, {totals['cpuRatio']:.2f} × of the CPU."
    )
    return "\n".join(lines)


def _median(values: Sequence[float]) -> float:
    return median(values) if values else 0.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
