"""Scope of a repair: the tests that the planner left alone, and how much of the suite it could run.
Coder and reviewer work within it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..task import Task
from .answers import plural

SLOWER = 2.0
"""Factor of the suite's time for a part of the suite that ran within that time before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Tests that count for a repair.

    left_alone: failing tests that do not belong to the issue. ran: where the suite takes longer
    than its limit, the number of tests, in the order of the collection, that the planner could
    run. measured: the planner ran the suite.
    """

    left_alone: frozenset[str] = frozenset()
    ran: int | None = None
    measured: bool = False

    def part_of(self, tests: Sequence[str]) -> tuple[str, ...]:
        """Return those of the collected *tests* that can be run."""
        return tuple(tests if self.ran is None else tests[: self.ran])

    def targets(self, names: Sequence[str], collected: Sequence[str]) -> tuple[str, ...]:
        """Return those of the failing tests *names* that the repair is about."""
        part = frozenset(self.part_of(collected))
        return tuple(name for name in names if name in part and name not in self.left_alone)

    def suite_s(self, limit_s: float) -> float:
        """Return the time for a run of the suite that must not end earlier than the planner's."""
        return limit_s * SLOWER if self.measured else limit_s


def scope_of(task: Task) -> Scope:
    """Return the scope that the planner recorded; a plan of another agent has none."""
    meta = task.last_meta("planner")
    left_alone, ran = meta.get("leftAlone"), meta.get("testsRun")
    phases = meta.get("phases")
    return Scope(
        left_alone=frozenset(map(str, left_alone)) if isinstance(left_alone, list) else frozenset(),
        ran=ran if isinstance(ran, int) and ran > 0 else None,
        measured=isinstance(phases, list)
        and any(isinstance(phase, Mapping) and "relation" in phase for phase in phases),
    )


def part_run(ran: int, collected: int) -> str:
    """Return how much of the suite was run, as the end of a sentence; empty for all of it."""
    return f"; {ran} of {plural(collected, 'test')} were run" if ran < collected else ""
