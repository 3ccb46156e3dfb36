"""Command line of a measurement whose cases are independent: options, directories, results."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .results import Document, ResultFile

__all__ = ["measure", "options_parser", "report"]


def options_parser(program: str, about: str | None) -> argparse.ArgumentParser:
    """Return a parser of the options that measurements share."""
    parser = argparse.ArgumentParser(prog=program, description=about)
    parser.add_argument("--quick", action="store_true", help="a tenth of the cases")
    parser.add_argument("--seed", type=int, default=0, help="of all choices (default: 0)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="cases that begin so; families"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="file of results; cases that it has are left out"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--keep", action="store_true", help="keep the directories of the cases")
    return parser


def measure(
    names: Sequence[str],
    options: argparse.Namespace,
    attempt: Callable[[str, Path], Document],
    line: Callable[[Document], str],
) -> list[Document]:
    """Try the cases that have no result yet, each in a directory of its own; return the results of
    all.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    results = ResultFile(options.out)
    for name in names:
        if name not in results.found:
            root = Path(tempfile.mkdtemp(prefix=f"uncaged-{name}-"))
            root.chmod(0o755)  # scripts run as another user if this is root
            try:
                document = attempt(name, root)
            except Exception as exc:  # the other cases go on
                traceback.print_exc()
                document = {"name": name, "fault": repr(exc)}
            finally:
                if not options.keep:
                    shutil.rmtree(root, ignore_errors=True)
            results.add(document)
            where = f"  {root}" if options.keep else ""
            sys.stderr.write(f"{line(document)}{where}\n")
    return [results.found[name] for name in names]


def report(
    found: Sequence[Document], totals: Mapping[str, Any], table: str, *, as_json: bool
) -> None:
    """Print the results."""
    if as_json:
        document = {"totals": dict(totals), "cases": [dict(one) for one in found]}
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        sys.stdout.write(table + "\n")
