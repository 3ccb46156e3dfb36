"""Cleanup of processes: finds those that serve a test's store, ends them by id, and waits until
they are gone.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

GONE_WITHIN_S = 60.0


SERVERS = ("uncaged_engine.worker", "uncaged_browser.session")


def workers_of(root: Path) -> list[psutil.Process]:
    """The live workers and browser sessions whose store is *root* or lies below it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it ended while we looked
            words = process.cmdline()
            program = " ".join(words[:6])
            if any(server in program for server in SERVERS) and any(
                _is_below(word, root) for word in words
            ):
                found.append(process)
    return found


def end_workers(root: Path) -> list[int]:
    """End the workers of *root* with all that they started; returns the numbers of those that would
    not go.
    """
    workers = workers_of(root)
    numbers = [worker.pid for worker in workers]
    for worker in workers:
        with suppress(psutil.Error):
            numbers += [child.pid for child in worker.children(recursive=True)]
    return end(numbers)


def end(numbers: Iterable[int]) -> list[int]:
    """SIGKILL these processes and see each end; returns the numbers of those that did not."""
    left = []
    for number in numbers:
        try:
            handle = os.pidfd_open(number)
        except ProcessLookupError:
            continue
        try:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            if not _ends(handle):
                left.append(number)
        finally:
            os.close(handle)
    return left


def await_end(number: int) -> bool:
    """Return whether a process ends by itself soon, reaped or not."""
    try:
        handle = os.pidfd_open(number)
    except ProcessLookupError:
        return True
    try:
        return _ends(handle)
    finally:
        os.close(handle)


def _ends(handle: int) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(GONE_WITHIN_S * 1000))


def _is_below(word: str, root: Path) -> bool:
    return word == str(root) or word.startswith(f"{root}/")
