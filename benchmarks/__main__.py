"""Command line of the benchmarks: `python -m benchmarks [FIGURE ...] [--quick] [--json]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from . import (
    calling,
    checking,
    children,
    cluster,
    cluster_lists,
    counts,
    crowds,
    doing,
    listing,
    paraphrases,
    peers,
    registry,
    replaying,
    scripts,
    sentences,
    snapshot,
    starting,
    steps,
    thread_store,
    tracing,
    turns,
    waiting,
    web,
    web_pages,
    web_replay,
    web_sessions,
    web_views,
    worst,
)
from .bench import SHARED_MEMORY, Bench, Figure, filesystem_of
from .table import Row, as_document, render

MODULES = (
    *(
        counts,
        steps,
        turns,
        tracing,
        replaying,
        checking,
        starting,
        registry,
        listing,
        thread_store,
    ),
    *(
        waiting,
        crowds,
        children,
        snapshot,
        web,
        web_pages,
        web_replay,
        web_sessions,
        web_views,
        scripts,
        calling,
        paraphrases,
        sentences,
        worst,
        doing,
        peers,
        cluster,
        cluster_lists,
    ),
)
FIGURES: dict[str, Figure] = {one.name: one for module in MODULES for one in module.FIGURES}


def main(arguments: Sequence[str]) -> int:
    """Return 0 even if a target was missed: a table is not a test; 1 if a figure could not be
    measured.
    """
    options = _options(arguments)
    bench = Bench(disk=options.directory, memory=SHARED_MEMORY, quick=options.quick)
    begin = time.monotonic()
    rows: list[Row] = []
    failed: list[str] = []
    for name in options.figures or FIGURES:
        sys.stderr.write(f"{name} …\n")
        try:
            rows += FIGURES[name].measure(bench)
        except Exception:  # the figures of the others took minutes
            traceback.print_exc()
            failed.append(name)
    if options.json:
        sys.stdout.write(
            json.dumps(
                {"machine": _machine(bench), "quick": bench.quick, "rows": as_document(rows)},
                indent=2,
            )
            + "\n"
        )
    else:
        sys.stdout.write(
            f"{_machine(bench)}\n\n{render(rows)}\n\n{_legend(bench.quick, time.monotonic() - begin)}\n"
        )
    if failed:
        sys.stderr.write(f"error: not measured: {', '.join(failed)}\n")
    return 1 if failed else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "figures", nargs="*", metavar="FIGURE", help=f"only these: {', '.join(FIGURES)}"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer rounds, steps, threads and files: in a minute or two",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where the disk is (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.figures) - set(FIGURES))
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    return options


def _machine(bench: Bench) -> str:
    return (
        f"Python {platform.python_version()}, Linux {platform.release()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; "
        f"disk: {bench.disk} ({filesystem_of(bench.disk)}), memory: {bench.memory} ({filesystem_of(bench.memory)})"
    )


def _legend(quick: bool, spent_s: float) -> str:
    words = "Each number is the median of rounds in which ours and the baseline took turns."
    short = " Quick: smaller than the figures ask for, so a hint only." if quick else ""
    return f"{words}{short} {spent_s:.0f} s in all."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
