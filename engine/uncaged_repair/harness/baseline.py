"""Baseline measurement before any change: outcomes of the suite, of each failing test alone, and
the executed lines, within a time limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..edits.facts import Types, ValueFacts
from ..task import Progress
from .host import RunRequest
from .results import GREEN, RED, Collected, Line, RunReport, TestResult

TRACE_FACTOR = 6.0
MAX_FAILING = 60
TRACE_TOTAL_S = 45.0
"""Processor time for tracing the failing tests, and again for tracing the passing ones."""
HANGING_CPU_S = 0.7
QUICK_S = 1.5
PATIENCE_S = 60.0


class RequestRunner(Protocol):
    """Runner of test requests: a host, or a cache before one."""

    def run(self, request: RunRequest) -> RunReport: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Outcomes and executed lines before any change.

    outcomes: of the whole suite. failing: tests that also fail alone, with their traces. unsteady:
    those that do not. passed: by passing test, the lines that failing tests run too. complete: the
    suite was run to its end.
    """

    collected: Collected
    outcomes: Mapping[str, str]
    times_s: Mapping[str, float]
    failing: Mapping[str, TestResult]
    unsteady: tuple[str, ...]
    passed: Mapping[str, frozenset[Line]] = field(default_factory=dict)
    complete: bool = True

    @property
    def red(self) -> tuple[str, ...]:
        """Return the names of all tests that fail in the suite."""
        return tuple(name for name, outcome in self.outcomes.items() if outcome in RED)

    @property
    def green(self) -> tuple[str, ...]:
        return tuple(name for name, outcome in self.outcomes.items() if outcome == GREEN)

    def lines_of(self, name: str) -> frozenset[Line]:
        return frozenset(
            (path, line) for path, seen in self.failing[name].lines.items() for line in seen
        )

    def facts(self, names: Sequence[str]) -> ValueFacts:
        """Collect the types and errors that were observed in the failing tests *names*."""
        held: dict[tuple[str, str], dict[int, set[str]]] = {}
        attributes: dict[str, dict[str, Types]] = {}
        errors: list[tuple[str, str]] = []
        for result in (self.failing[name] for name in names):
            for path, line, name, types in result.held:
                held.setdefault((path, name), {}).setdefault(line, set()).update(types)
            for kind, seen in result.attributes.items():
                known = attributes.setdefault(kind, {})
                for name, types in seen.items():
                    known[name] = known.get(name, frozenset()) | types
            if result.error is not None:
                errors.append(result.error)
        places = {
            key: tuple((line, frozenset(types)) for line, types in found.items())
            for key, found in held.items()
        }
        return ValueFacts(locals=places, attributes=attributes, errors=tuple(dict.fromkeys(errors)))


def measure(
    host: RequestRunner, collected: Collected, *, test_s: float, suite_s: float, progress: Progress
) -> Baseline:
    """Run the suite, then each failing test alone with tracing, then the passing tests with tracing
    until the time is up.
    """
    progress(f"running {len(collected.tests)} tests")
    suite = run_suite(host, collected.tests, test_s=min(test_s, QUICK_S), suite_s=suite_s)
    found = {result.name: result for result in suite.results}
    results = {name: found[name] for name in collected.tests if name in found}
    _retry_timeouts(host, results, test_s, progress)
    outcomes = {name: result.outcome for name, result in results.items()}
    times = {name: result.cpu_s for name, result in results.items()}
    failing, unsteady = _trace_failing(
        host, [result for result in results.values() if result.outcome in RED], test_s, progress
    )
    passing = [name for name, outcome in outcomes.items() if outcome == GREEN]
    traced = _trace_passing(
        host, failing, sorted(passing, key=lambda name: times.get(name, 0.0)), test_s, progress
    )
    return Baseline(
        collected=collected,
        outcomes=outcomes,
        times_s=times,
        failing=failing,
        unsteady=unsteady,
        passed=traced,
        complete=len(outcomes) == len(collected.tests),
    )


def _retry_timeouts(
    host: RequestRunner, results: dict[str, TestResult], test_s: float, progress: Progress
) -> None:
    """Run tests that timed out again with the whole time of a test. If one times out again, other
    parameters of the same function are taken to hang, too.
    """
    cut = [name for name, result in results.items() if result.outcome == "timeout"]
    hanging: set[str] = set()
    spent = 0.0
    for name in cut:
        function = name.partition("[")[0]
        if test_s <= QUICK_S or spent > PATIENCE_S or function in hanging:
            continue
        progress(f"waiting for {name}")
        run = host.run(
            RunRequest(tests=[name], cpu_s=test_s, wall_s=4 * test_s, total_s=5 * test_s)
        )
        spent += run.cpu_s
        results |= {result.name: result for result in run.results}
        if results[name].outcome == "timeout":
            hanging.add(function)


def _trace_failing(
    host: RequestRunner, red: Sequence[TestResult], test_s: float, progress: Progress
) -> tuple[dict[str, TestResult], tuple[str, ...]]:
    """Run each failing test alone. Return those that fail again, with their traces, and the names
    of those that pass.
    """
    failing: dict[str, TestResult] = {}
    unsteady: list[str] = []
    spent_s = 0.0
    for result in red[:MAX_FAILING]:
        if failing and spent_s > TRACE_TOTAL_S:
            break
        progress(f"tracing {result.name}")
        cpu_s = HANGING_CPU_S if result.outcome == "timeout" else test_s * TRACE_FACTOR
        request = RunRequest(
            tests=[result.name],
            cpu_s=cpu_s,
            wall_s=test_s * TRACE_FACTOR,
            total_s=2 * test_s * TRACE_FACTOR,
            cover=True,
            types=True,
        )
        run = host.run(request)
        spent_s += run.cpu_s
        alone = next(iter(run.results), None)
        if alone is not None and alone.outcome in RED:
            failing[result.name] = alone
        elif alone is not None:
            unsteady.append(result.name)
    return failing, tuple(unsteady)


def run_suite(
    host: RequestRunner, tests: Sequence[str], *, test_s: float, suite_s: float
) -> RunReport:
    """Run all *tests* in their order, each within *test_s* and all within *suite_s* of processor
    time. The test that runs when the time of the suite is over has no outcome.
    """
    return host.run(
        RunRequest(
            tests=tests,
            cpu_s=test_s,
            wall_s=max(30.0, 4 * test_s),
            total_s=suite_s,
            suite=True,
            tidy=True,
        )
    )


def _trace_passing(
    host: RequestRunner,
    failing: Mapping[str, TestResult],
    passing: Sequence[str],
    test_s: float,
    progress: Progress,
) -> dict[str, frozenset[Line]]:
    """Return which lines of the failing tests each passing test runs. Tests of the same files go
    first, then quick ones.
    """
    only: dict[str, set[int]] = {}
    for result in failing.values():
        for path, lines in result.lines.items():
            only.setdefault(path, set()).update(lines)
    if not only or not passing:
        return {}
    files = {name.partition("::")[0] for name in failing}
    order = sorted(passing, key=lambda name: name.partition("::")[0] not in files)
    progress(f"tracing {len(order)} passing tests")
    sorted_only = {path: sorted(lines) for path, lines in only.items()}
    run = host.run(
        RunRequest(
            tests=order,
            cpu_s=test_s * TRACE_FACTOR,
            wall_s=test_s * TRACE_FACTOR,
            total_s=TRACE_TOTAL_S,
            cover=True,
            only=sorted_only,
        )
    )
    return {
        result.name: frozenset((path, line) for path, seen in result.lines.items() for line in seen)
        for result in run.results
        if result.outcome == GREEN
    }
