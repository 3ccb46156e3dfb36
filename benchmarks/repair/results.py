"""Results of the measurement: one JSON line for each case, and the tables made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from .cases import KINDS, Kind
from .verdict import VERDICTS, Verdict

RIGHT: Sequence[Verdict] = ("as upstream", "equal")
RIGHT_REACH, OVERFIT_REACH, CPU_REACH_S = 75.0, 3.0, 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of one case. edit: kind of the single edit that restores the released file, None if
    the repair has none. detail: the difference from upstream, or the error.
    """

    name: str
    kind: Kind
    verdict: Verdict
    edit: str | None
    rank: int | None
    candidates: int
    tried: int
    exit_code: int
    cpu_s: float
    wall_s: float
    detail: str = ""
    message: str = ""
    diff: str = ""
    answers: Sequence[str] = field(default_factory=tuple)

    @property
    def reachable(self) -> bool:
        return self.edit is not None


def append(path: Path, result: Result) -> None:
    """Append *result* as one line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def read(path: Path) -> list[Result]:
    """Return the results in *path*; the last of each case counts. A torn last line is dropped."""
    found: dict[str, Result] = {}
    if path.is_file():
        for line in path.read_text("utf-8").split("\n")[:-1]:
            record: dict[str, Any] = json.loads(line)
            found[record["name"]] = Result(**record)
    return list(found.values())


def render(results: Sequence[Result]) -> str:
    """Return the tables as Markdown: the sets, then the cases."""
    parts = [_sets(results)]
    for kind in KINDS:
        part = [result for result in results if result.kind == kind]
        parts += [_cases(kind, part)] if part else []
    return "\n\n".join(parts)


def _sets(results: Sequence[Result]) -> str:
    head = ["set", "cases", *VERDICTS, "CPU s median", "CPU s 90th"]
    rows = []
    for kind in KINDS:
        part = [result for result in results if result.kind == kind]
        reachable = [result for result in part if result.reachable]
        if part:
            rows += [_row(kind, part), _row(f"{kind}, one edit repairs it", reachable)]
    reachable = [result for result in results if result.reachable]
    rows += [_row("all, one edit repairs it", reachable)]
    return "\n".join([_line(head), _line(["---"] * len(head)), *rows, "", _reach(reachable)])


def _row(title: str, results: Sequence[Result]) -> str:
    counts = [sum(result.verdict == verdict for result in results) for verdict in VERDICTS]
    times = [result.cpu_s for result in results]
    spread = [f"{median(times):.1f}", f"{percentile(times, 0.9):.1f}"] if times else ["", ""]
    return _line([title, str(len(results)), *map(str, counts), *spread])


def _reach(results: Sequence[Result]) -> str:
    if not results:
        return ""
    right = 100 * sum(result.verdict in RIGHT for result in results) / len(results)
    overfit = 100 * sum(result.verdict == "overfit" for result in results) / len(results)
    cpu_s = median(result.cpu_s for result in results)
    return (
        f"Where one edit repairs it: {right:.0f} % right (reach {RIGHT_REACH:.0f} %), "
        f"{overfit:.1f} % overfit (reach {OVERFIT_REACH:.0f} %), median {cpu_s:.1f} s of CPU (reach {CPU_REACH_S:.0f} s)."
    )


def _cases(kind: Kind, results: Sequence[Result]) -> str:
    head = ["case", "result", "one edit", "tried", "CPU s", "detail"]
    rows = [
        _line(
            [
                result.name,
                result.verdict,
                result.edit or "no",
                str(result.tried),
                f"{result.cpu_s:.1f}",
                _cell(result.detail),
            ]
        )
        for result in results
    ]
    return "\n".join(
        [f"## {kind.capitalize()}", "", _line(head), _line(["---"] * len(head)), *rows]
    )


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that a *share* of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())[:200]
