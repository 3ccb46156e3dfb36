"""The command begins here: `run` has a worker started first of all, since that takes as long to
start as the command itself.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from uncaged_engine.worker.client import Launching

FEW_COLLECTIONS = 100_000
"""Objects between two searches for garbage. What a start imports is none: a tenth of its time, and
a quarter of a list of ten thousand.
"""
NOTHING_RUNS = frozenset(("--help", "-h", "--help-flow", "--estimate"))


def main() -> NoReturn:
    """Run the command line of this process."""
    gc.set_threshold(FEW_COLLECTIONS)
    open_standard_descriptors()
    launching = begin(sys.argv[1:])
    from .main import main as perform  # while the worker starts

    perform(launching)


def open_standard_descriptors() -> None:
    """Put the null device where the caller left standard input, output or error closed.

    Otherwise the next file or pipe that is opened would get such a number, and be taken for the
    stream.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - it stays open


def begin(argv: Sequence[str]) -> Launching | None:
    """Start the worker of the flow that *argv* wants to run, if that can be told at a glance;
    nothing depends on it.
    """
    if (
        len(argv) < 2
        or argv[0] != "run"
        or argv[1].startswith("-")
        or not NOTHING_RUNS.isdisjoint(argv)
    ):
        return None
    from uncaged_engine.worker.early import rouse_flow

    return rouse_flow(argv[1])
