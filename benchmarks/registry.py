"""Commands on a registry of ten thousand flows, against a registry of twenty."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from uncaged_bundles.validation.validate import read_bundle

from . import flows
from .bench import Bench, Figure
from .filling import fill_registry
from .laboratory import Laboratory
from .starting import command
from .table import Row, ratios

FEW, MANY = 20, 10_000
NOW_MS = 1_767_225_600_000
MISSED = {
    "list": "every flow is a line to print",
    "run --detach": "the wall clock has both commands and a worker in it",
    "add": "text and index are written whole, and the index follows row by row",
    "one TAB": "reading and checking the names",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A store with so many flows. environment: of the commands that use it."""

    laboratory: Laboratory
    environment: Mapping[str, str]

    def cpu_s(self, *words: str, **more: str) -> float:
        """Run a command, and return the CPU time that it and what it waited for took."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*command(), *words],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**self.environment, **more},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def registry(bench: Bench) -> Sequence[Row]:
    """Measure the frequent commands by CPU time, which other work on the machine does not
    change.
    """
    with bench.laboratory() as few, bench.laboratory() as many:
        cases = [_case(few, FEW), _case(many, bench.scaled(MANY))]
        count = len(many.engine.registry.names())
        rows = []
        for title, act in _acts().items():
            pairs = []
            for number in range(len(bench.rounds(7)) + 1):
                bare, ours = (act(case, number) for case in cases)
                if number:  # the first one also warms the bytecode cache
                    pairs.append((ours, bare))
            rows.append(
                Row(
                    figure="registry",
                    title=f"`{title}` with {count:,} flows"
                    if title != "one TAB"
                    else f"{title} with {count:,} flows",
                    values=ratios(pairs),
                    unit="×",
                    baseline=f"{median(bare for _, bare in pairs) * 1000:.0f} ms of CPU with {FEW} flows",
                    reach=2.0,
                    missed=MISSED[title],
                )
            )
        return rows


def _acts() -> Mapping[str, Callable[[Case, int], float]]:
    def add(case: Case, number: int) -> float:
        path: Path = case.laboratory.directory / "extra.py"
        path.write_bytes(flows.source("extra", flows.STEPS, edition=number))
        return case.cpu_s("add", "extra", str(path), "--accept")

    def complete(case: Case, _number: int) -> float:
        line = {
            "COMP_WORDS": "uncaged-workflow run flow-1",
            "COMP_CWORD": "2",
            "_UNCAGED_WORKFLOW_COMPLETE": "bash_complete",
        }
        return case.cpu_s(**line)

    return {
        "list": lambda case, _: case.cpu_s("list"),
        "run --detach": lambda case, number: case.cpu_s(
            "run", f"flow-{number}", "--prompt", "1", "--detach"
        ),
        "add": add,
        "one TAB": complete,
    }


def _case(laboratory: Laboratory, count: int) -> Case:
    """Fill a registry in one write."""
    store = laboratory.engine.store
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    environment["UNCAGED_WORKFLOW_HOME"] = str(store.root)
    named = ((f"flow-{number}", flows.STEPS) for number in range(count))
    fill_registry(store, ((name, read_bundle(flows.source(name, code))) for name, code in named))
    case = Case(laboratory=laboratory, environment=environment)
    case.cpu_s("list")  # the text is read whole once, after an edit
    return case


FIGURES = (Figure(name="registry", measure=registry),)
