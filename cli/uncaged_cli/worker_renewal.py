"""Renewal of a worker's process that lost the database: the same command in the same process id,
as a new worker that waits until the database can be reached.

An `exec` ends all that the process did at once, as its death would: threads that others drive by
then must not go on here. Sandbox processes and scripts end with the threads of execution that
started them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn

from uncaged_bundles.errors import StorageError

from .display.output import note

if TYPE_CHECKING:
    from .inputs.stores import ChosenStore

LOSSES_VARIABLE = "UNCAGED_WORKFLOW_WORKER_LOSSES"
"""How often in a row this process has lost the database."""
CALM_S = 300.0
"""After so long without a loss, the next one is the first."""
FIRST_DELAY_S = 0.5
MOST_DELAY_S = 30.0


class Renewal:
    """Renewals of this process. losses: how many came one after the other."""

    def __init__(self, losses: int) -> None:
        self._losses = losses
        self._is_started = False
        self._begun_s = time.monotonic()

    @classmethod
    def of_process(cls) -> Renewal:
        """Read how often the process was renewed, from a variable that its children do not get."""
        text = os.environ.pop(LOSSES_VARIABLE, "")
        return cls(int(text) if text.isdecimal() else 0)

    @property
    def is_possible(self) -> bool:
        """Tell whether a loss is one: a first process that cannot start has another problem."""
        return self._is_started or self._losses > 0

    def started(self) -> None:
        """Note that the worker could take threads."""
        self._is_started = True

    def wait_for(self, chosen: ChosenStore, stop: threading.Event) -> bool:
        """In a renewed process, wait until the store can be opened; return False if *stop* was set
        before. A first process does not wait: its address may be wrong.

        Raises:
            RefusedError: the store can be reached, and refuses this user.
        """
        from uncaged_engine.shared.opening import opened_shared

        if not self._losses:
            return True
        shown, delay_s = "", min(FIRST_DELAY_S * 2**self._losses, MOST_DELAY_S)
        while not stop.wait(delay_s):
            try:
                with opened_shared(chosen.address, is_visible=chosen.is_visible):
                    return True
            except StorageError as exc:
                if str(exc) != shown:
                    shown = str(exc)
                    note(f"waits for the database: {shown}")
            delay_s = min(delay_s * 2, MOST_DELAY_S)
        return False

    def begin_anew(self) -> NoReturn:
        """Replace this process by a new worker of the same command line."""
        in_a_row = self._losses if time.monotonic() - self._begun_s < CALM_S else 0
        os.environ[LOSSES_VARIABLE] = str(in_a_row + 1)
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this command
