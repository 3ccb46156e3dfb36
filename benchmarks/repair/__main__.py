"""Command line of the measurement: `python -m benchmarks.repair --work DIR [OPTION ...]`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .attempt import Attempt, Runner
from .cases import KINDS, Case, read_cases
from .control_group import end_all_groups
from .differential import Comparison, compare
from .reach import reach_of
from .releases import prepare
from .results import Result, append, read, render
from .verdict import as_upstream, verdict_of


class Measurement:
    """State of one run: the runner, and the file of results, to which one thread writes at a
    time.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._work: Path = options.work.resolve()
        self._sdists: Path | None = options.sdists and options.sdists.resolve()
        self._out: Path = options.resume or self._work / "results.jsonl"
        self._runner = Runner(
            program=options.program.absolute(), budget_s=options.budget, wall_s=options.wall
        )
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, cases: Sequence[Case], jobs: int) -> list[Result]:
        """Measure those of *cases* that have no result yet; return the results of all of them."""
        self._work.mkdir(parents=True, exist_ok=True)
        done = {result.name for result in read(self._out)}
        releases = list(dict.fromkeys(case.release for case in cases))
        waiting = [
            [case for case in cases if case.release == release and case.name not in done]
            for release in releases
        ]
        with ThreadPoolExecutor(jobs) as pool:
            try:  # two cases of a release share its directory
                list(pool.map(self._measure_all, waiting))
            except BaseException:  # interrupted
                self._stopped = True
                end_all_groups()
                raise
        names = {case.name for case in cases}
        return [result for result in read(self._out) if result.name in names]

    def _measure_all(self, cases: Sequence[Case]) -> None:
        for case in cases:
            if self._stopped:
                return
            try:
                result = self._measure(case)
            except Exception as exc:  # the other cases take hours
                if self._stopped:
                    return
                traceback.print_exc()
                result = _failed(case, repr(exc))
            with self._lock:
                if self._stopped:  # a killed run says nothing
                    return
                append(self._out, result)
                sys.stderr.write(
                    f"{result.name}: {result.verdict}, {result.cpu_s:.1f} s of CPU, {result.wall_s:.0f} s\n"
                )

    def _measure(self, case: Case) -> Result:
        release = prepare(case, self._work, self._sdists)
        reach = reach_of(case, release, self._runner.program.parent / "python")
        attempt = self._runner.attempt(case, release)
        upstream = as_upstream(
            {
                file: release.released(file)
                for file in attempt.files
                if (release.pristine / file).is_file()
            },
            attempt.files,
        )
        compared = attempt.committed and attempt.exit_code == 0 and not upstream
        comparison = compare(release, attempt.files, case.already) if compared else None
        verdict = verdict_of(
            exit_code=attempt.exit_code,
            committed=attempt.committed,
            upstream=upstream,
            comparison=comparison,
        )
        return Result(
            name=case.name,
            kind=case.kind,
            verdict=verdict,
            edit=reach.kind,
            rank=reach.rank,
            candidates=reach.candidates,
            tried=attempt.tried,
            exit_code=attempt.exit_code,
            cpu_s=round(attempt.cpu_s, 2),
            wall_s=round(attempt.wall_s, 1),
            detail=_detail(attempt, comparison),
            message=attempt.message,
            diff=attempt.diff,
            answers=attempt.answers,
        )


def _detail(attempt: Attempt, comparison: Comparison | None) -> str:
    if comparison is None:
        return "" if attempt.committed else _reason(attempt.message)
    if comparison.still_failing:
        return f"still failing: {', '.join(comparison.still_failing[:3])}"
    calls = f"{comparison.differing} of {comparison.compared} outcomes of {', '.join(comparison.functions[:3])} differ"
    unreadable = f", {comparison.unreadable} calls not recorded" if comparison.unreadable else ""
    return f"{calls}{unreadable}. {comparison.example}"


def _reason(output: str) -> str:
    """Return the line of the command's output that says why nothing was committed."""
    lines = [line for line in output.splitlines() if line.startswith(("unsuccessful", "error"))]
    return lines[-1] if lines else output[-300:]


def _failed(case: Case, error: str) -> Result:
    return Result(
        name=case.name,
        kind=case.kind,
        verdict="error",
        edit=None,
        rank=None,
        candidates=0,
        tried=0,
        exit_code=-1,
        cpu_s=0.0,
        wall_s=0.0,
        detail=error,
    )


def main(arguments: Sequence[str]) -> int:
    """Return 0 if all cases were measured, whatever the results are."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    cases = [
        case
        for kind in KINDS
        if options.only in (None, kind)
        for case in read_cases(kind, options.cases)
    ]
    if options.case:
        cases = [case for case in cases if case.name in options.case]
    results = Measurement(options).run(cases[: options.limit], options.jobs)
    sys.stdout.write(render(results) + "\n")
    return 0 if len(results) == len(cases[: options.limit]) else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repair", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="directory for the repositories")
    parser.add_argument("--only", choices=KINDS, help="only this set")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this case")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N cases")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=1)
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="results so far (default: DIR/results.jsonl)"
    )
    parser.add_argument(
        "--sdists",
        type=Path,
        metavar="DIR",
        help="directory of the source distributions, instead of pip",
    )
    parser.add_argument("--cases", type=Path, metavar="DIR", help="directory of other data files")
    parser.add_argument(
        "--program",
        type=Path,
        default=Path(sys.executable).parent / "uncaged-workflow",
        help="the command to measure (default: %(default)s)",
    )
    parser.add_argument(
        "--budget", type=float, default=60.0, help="budgetSeconds (default: %(default)s)"
    )
    parser.add_argument("--wall", type=float, default=1800.0, help="seconds until a run is killed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
