"""Events of a worker of a shared store, as notes or as JSON Lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import json_output
from .output import Styled, note

if TYPE_CHECKING:
    from uncaged_bundles.ids import ThreadId
    from uncaged_engine.services.shared import WorkerOffer


class WorkerEvents:
    """Printer of events. Its methods may be called from several threads of execution."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._driven: set[ThreadId] = set()
        self.is_stopping = False

    def started(self, address: str, offer: WorkerOffer) -> None:
        """Print that the worker takes threads."""
        flows = "" if offer.flows is None else f" of {', '.join(sorted(offer.flows))}"
        offers = f"; offers {', '.join(sorted(offer.offers))}" if offer.offers else ""
        note(f"worker of {address}, {_threads(offer.slots)}{flows} at a time{offers}")

    def driven(self, thread: ThreadId) -> None:
        """Print that a thread begins to be driven here."""
        self._driven.add(thread)
        self._print({"threadId": thread, "event": "driven"}, f"thread {thread}: driven here")

    def left(self, thread: ThreadId, status: str) -> None:
        """Print the status in which a thread was left."""
        self._driven.discard(thread)
        self._print(
            {"threadId": thread, "event": "left", "status": status}, f"thread {thread}: {status}"
        )

    def warned(self, thread: ThreadId, problem: str) -> None:
        """Print a problem of a thread. problem: follows the thread's id in a sentence."""
        if self._as_json:
            json_output.line({"threadId": thread, "event": "warning", "message": problem})
        else:
            note(Styled("warning: ", "yellow"), f"thread {thread} {problem}")

    def hindered(self, problem: str) -> None:
        """Print why the worker takes no threads. problem: a sentence without a subject."""
        if self._as_json:
            json_output.line({"event": "warning", "message": problem})
        else:
            note(Styled("warning: ", "yellow"), f"the worker {problem}")

    def lost(self, problem: str) -> None:
        """Print that the worker lost the database, and that a new one begins in its place."""
        number = len(self._driven)
        self._print(
            {"event": "lost", "threads": number, "message": problem},
            f"{problem}; it begins anew, and other workers take over {_threads(number)} that it drove"
            if number
            else f"{problem}; it begins anew",
        )

    def stopping(self) -> None:
        """Print that the worker takes no more threads, and what it waits for."""
        self.is_stopping = True
        number = len(self._driven)
        self._print(
            {"event": "stopping", "threads": number},
            f"takes no more threads, and ends once {_threads(number)} can be left after a step; Ctrl-C again ends at once"
            if number
            else "takes no more threads, and ends: it drives none",
        )

    def interrupted(self) -> None:
        """Print that the worker ends at once, and what becomes of its threads."""
        number = len(self._driven)
        self._print(
            {"event": "interrupted", "threads": number},
            f"ended at once; other workers take over {_threads(number)} that it drove"
            if number
            else "ended at once",
        )

    def _print(self, document: dict[str, object], text: str) -> None:
        if self._as_json:
            json_output.line(document)
        else:
            note(text)


def _threads(number: int) -> str:
    return f"{number} thread{'' if number == 1 else 's'}"
