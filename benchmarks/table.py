"""Table of figures: measured value, baseline, target, and an explanation of a missed target."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

HEADERS = ("figure", "measured (min–max)", "baseline of this run", "reach", "")
GAP = "  "
WIDTH = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table.

    values: one measurement a round; none if it could not be measured, which the remark explains.
    unit: what follows each number. reach: the value that must not be exceeded; None for a row that
    only informs. exact: the reach must be met to the digit. at_least: the reach must not be fallen
    below. missed: why, if it is. remark: worth saying in any case.
    """

    figure: str
    title: str
    unit: str
    baseline: str
    values: tuple[float, ...] = ()
    reach: float | None = None
    exact: bool = False
    at_least: bool = False
    missed: str = ""
    remark: str = ""

    @property
    def middle(self) -> float:
        return median(self.values)

    @property
    def ok(self) -> bool | None:
        """Whether the median of the rounds is within the reach; None where there is none, or
        nothing was measured.
        """
        if self.reach is None or not self.values:
            return None
        if self.exact:
            return self.middle == self.reach
        return self.middle >= self.reach if self.at_least else self.middle <= self.reach

    @property
    def words(self) -> str:
        """The sentence below a row: why a reach was missed, and the remark."""
        parts = [self.remark] if self.remark else []
        if self.ok is False:
            best = max(self.values) if self.at_least else min(self.values)
            within = replace(self, values=(best,)).ok
            parts.insert(
                0,
                f"missed: {self.missed}"
                + ("; its best round was within the reach" if within and not self.exact else ""),
            )
        return "; ".join(parts)


def ratios(pairs: Iterable[tuple[float, float]]) -> tuple[float, ...]:
    """Return the ratio to the baseline per round, which cancels what slows both."""
    return tuple(ours / bare for ours, bare in pairs)


def render(rows: Sequence[Row]) -> str:
    """Return the table as text."""
    cells = [HEADERS, *(_cells(row) for row in rows)]
    sizes = [max(len(line[column]) for line in cells) for column in range(len(HEADERS))]
    lines = []
    for number, line in enumerate(cells):
        lines.append(
            GAP.join(cell.ljust(size) for cell, size in zip(line, sizes, strict=True)).rstrip()
        )
        words = rows[number - 1].words if number else ""
        lines += textwrap.wrap(words, WIDTH, initial_indent=GAP * 2, subsequent_indent=GAP * 2)
    return "\n".join(lines)


def as_document(rows: Sequence[Row]) -> list[Mapping[str, object]]:
    """Return the table as JSON values."""
    return [
        {
            "figure": row.figure,
            "title": row.title,
            "unit": row.unit,
            "median": row.middle if row.values else None,
            "min": min(row.values, default=None),
            "max": max(row.values, default=None),
            "values": list(row.values),
            "baseline": row.baseline,
            "reach": row.reach,
            "relation": _relation(row),
            "ok": row.ok,
            "words": row.words,
        }
        for row in rows
    ]


def _cells(row: Row) -> tuple[str, ...]:
    if not row.values:
        return row.title, "not measured", "", "", ""
    spread = (
        f" ({_number(min(row.values))}–{_number(max(row.values))})" if len(row.values) > 1 else ""
    )
    unit = f" {row.unit}" if row.unit else ""
    reach = "" if row.reach is None else f"{_relation(row)} {_number(row.reach)}{unit}"
    verdict = {True: "ok", False: "missed", None: ""}[row.ok]
    return row.title, f"{_number(row.middle)}{unit}{spread}", row.baseline, reach, verdict


def _relation(row: Row) -> str:
    if row.exact:
        return "exactly"
    return "≥" if row.at_least else "≤"


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value)}"
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"
