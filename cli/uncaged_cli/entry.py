"""Entry point of the command. `run` and `do` start the worker first, since a worker takes as long
to start as the command itself, and then try the sandbox meanwhile.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from uncaged_engine.worker.client import Launching

GC_THRESHOLD = 100_000
"""Allocations between two garbage collections. The imports of a start leave no garbage; collecting
took a tenth of its time, and a quarter of listing ten thousand threads.
"""
EXIT_INTERRUPTED = 130
OPTIONS_OF_DO = frozenset(("--yes", "--no-model", "--detach", "--json", "--verbose", "-v"))
"""Options that neither take a word nor change how a sentence is read."""
STORE_VARIABLE = "UNCAGED_WORKFLOW_STORE"
"""Names a shared store, whose threads no worker of this machine's directory drives."""
OPTIONS_WITHOUT_RUN = frozenset(("--help", "-h", "--help-flow", "--estimate", "--store"))


def main() -> NoReturn:
    """Run the command line of this process."""
    try:
        _main()
    except KeyboardInterrupt:  # before, or after, the verb itself
        sys.exit(EXIT_INTERRUPTED)


def _main() -> NoReturn:
    gc.set_threshold(GC_THRESHOLD)
    open_standard_descriptors()
    launching = start_early(sys.argv[1:])
    if launching is not None:
        from uncaged_engine.sandbox.mechanism import try_early

        try_early()
    from .main import main as perform  # while the worker starts

    perform(launching)


def open_standard_descriptors() -> None:
    """Open the null device where the caller closed standard input, output or error.

    Otherwise the next opened file would get that descriptor and be used as the stream.
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


def start_early(argv: Sequence[str]) -> Launching | None:
    """Start the worker of the flow that *argv* runs, if *argv* clearly names one or has a sentence
    for it. The run does not depend on it.
    """
    if len(argv) < 2 or any(word.partition("=")[0] in OPTIONS_WITHOUT_RUN for word in argv):
        return None
    if os.environ.get(STORE_VARIABLE):
        return None
    if argv[0] == "run" and not argv[1].startswith("-"):
        from uncaged_engine.worker.client import rouse_flow

        return rouse_flow(argv[1])
    if argv[0] == "do" and (sentence := sentence_in(argv[1:])) is not None:
        try:
            from uncaged_dispatcher.conversations.early import rouse_sentence
        except ModuleNotFoundError:  # the package is not installed; the verb says so
            return None
        return rouse_sentence(sentence)
    return None


def sentence_in(words: Sequence[str]) -> str | None:
    """Return the sentence among the words of `do`; None for a verb, or if an option takes a word or
    excludes the patterns.
    """
    options = {word for word in words if word.startswith("-")}
    sentence = " ".join(word for word in words if word not in options)
    if options - OPTIONS_OF_DO or sentence.startswith("@"):
        return None
    return sentence
