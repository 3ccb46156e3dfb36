"""The command begins here: `run` has a worker started first of all, since that takes as long to start as the command itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from uncaged_engine.worker.client import Launching

NOTHING_RUNS = frozenset(("--help", "-h", "--help-flow", "--estimate"))


def main() -> NoReturn:
    """Run the command line of this process."""
    launching = begin(sys.argv[1:])
    from .main import main as perform  # while the worker starts

    perform(launching)


def begin(argv: Sequence[str]) -> Launching | None:
    """Start the worker of the flow that *argv* wants to run, if that can be told at a glance; nothing depends on it."""
    if len(argv) < 2 or argv[0] != "run" or argv[1].startswith("-") or not NOTHING_RUNS.isdisjoint(argv):
        return None
    from uncaged_engine.worker.early import rouse_flow

    return rouse_flow(argv[1])
