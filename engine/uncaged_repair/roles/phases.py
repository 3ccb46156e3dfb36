"""Phases of the plan: which are open, and which tests each of them names. Plans of other agents are
read, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..task import Task

ACCEPTANCE = "These tests pass, and no other test breaks: "
MAX_NAMES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Phase of the plan. ours: its acceptance criterion lists tests in the form that our planner
    writes.
    """

    name: str
    text: str
    ours: bool

    def tests_among(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return those of the tests *names* that the phase names."""
        return tuple(
            name
            for name in names
            if re.search(rf"(?<![\w/.]){re.escape(name)}(?![\w\[])", self.text)
        )

    def open_with(self, failing: Sequence[str]) -> bool:
        """Return whether the phase is open while the tests *failing* fail. A phase of another
        planner is done when no test fails.
        """
        return bool(self.tests_among(failing) if self.ours else failing)


def acceptance_of(tests: Sequence[str]) -> str:
    more = len(tests) - MAX_NAMES
    return ACCEPTANCE + ", ".join(tests[:MAX_NAMES]) + (f", and {more} more" if more > 0 else "")


def open_phases(task: Task) -> list[Phase]:
    """Return the planned phases that no coder's answer has completed yet, in order."""
    completed = {
        name for meta in metas(task, "coder") for name in _list(meta.get("completedPhases"))
    }
    planned = [
        phase
        for phase in _list(task.last_meta("planner").get("phases"))
        if isinstance(phase, Mapping)
    ]
    return [_phase(phase) for phase in planned if phase.get("name") not in completed]


def metas(task: Task, role: str) -> list[Mapping[str, object]]:
    """Return the data of all steps of *role*."""
    found = [step.get("meta") for step in task.steps if step.get("role") == role]
    return [meta for meta in found if isinstance(meta, Mapping)]


def _phase(entry: Mapping[str, object]) -> Phase:
    acceptance = str(entry.get("acceptance", ""))
    return Phase(
        name=str(entry.get("name", "")),
        text=f"{acceptance}\n{entry.get('description', '')}",
        ours=acceptance.startswith(ACCEPTANCE),
    )


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
