"""No process that a test started outlives it: all are found by the store that they serve, ended by their number, and seen to be gone."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

GONE_WITHIN_S = 10.0


def workers_of(root: Path) -> list[psutil.Process]:
    """The live workers whose store is *root* or lies below it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it ended while we looked
            words = process.cmdline()
            if "uncaged_engine.worker" in " ".join(words[:6]) and any(_is_below(word, root) for word in words):
                found.append(process)
    return found


def end_workers(root: Path) -> list[int]:
    """End the workers of *root* with all that they started; returns the numbers of those that would not go."""
    workers = workers_of(root)
    everybody = list(workers)
    for worker in workers:
        with suppress(psutil.Error):
            everybody += worker.children(recursive=True)
    for process in everybody:
        with suppress(psutil.Error):
            process.kill()
    _, alive = psutil.wait_procs(everybody, timeout=GONE_WITHIN_S)
    return [process.pid for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def _is_below(word: str, root: Path) -> bool:
    return word == str(root) or word.startswith(f"{root}/")
