"""Notifications about the statuses of one thread, by the driver that writes them.

The journal has a note of each, in front of the status and flushed with it, before it is sent. It is
sent once the worker has left the thread: who gets it can resume the thread at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import ThreadId

from ..door.effects import Cancel
from ..door.notifications import Event, Notification
from ..journal import lines
from ..journal.codec import decode
from ..journal.infolog import InfoLog
from ..notify.sender import Sender
from ..settings.config import Config

FOR_CHILDREN: frozenset[Event] = frozenset(("waiting", "unknown"))
"""Events of a thread that another one started: only what a person has to decide. Its failure is an
outcome for its parent.
"""


class StatusNotes:
    """Notifications of one thread. start: its start record, once it was read."""

    def __init__(
        self,
        thread: ThreadId,
        *,
        config: Config,
        environment: Mapping[str, str],
        sender: Sender | None,
        info: InfoLog,
    ) -> None:
        self.start: Mapping[str, Any] = {}
        self._thread = thread
        self._config = config
        self._environment = environment
        self._sender = sender
        self._info = info
        self._unsent: list[Notification] = []

    def about(self, body: bytes, now_ms: int) -> Notification | None:
        """Return the notification about the status that an open record writes; None if it writes
        none of those that a person wants to know of.
        """
        settings = self._config.notify
        if settings is None or self._sender is None:
            return None
        event = lines.status_of(body)
        if event is None or event not in settings.events:
            return None
        parent = self.start.get("parent")
        if isinstance(parent, Mapping) and event not in FOR_CHILDREN:
            return None
        return Notification(
            event=event,
            subject=self._thread,
            flow=str(self.start.get("name", "")),
            message=_message(decode(body + b"}")),
            timestamp_ms=now_ms,
            parent=str(parent["threadId"]) if isinstance(parent, Mapping) else None,
        )

    def keep(self, notification: Notification) -> None:
        """Keep the notification of a status that is on disk until the thread was left."""
        self._unsent.append(notification)

    def send_kept(self) -> None:
        """Send what was kept. Idempotent."""
        # crash here: note and status on disk, the notification not sent; it never is
        while self._unsent:
            self.send(self._unsent.pop(0))

    def send(self, notification: Notification) -> None:
        """Send a notification in another thread, if a person wants to know of its event; errors are
        in the thread's debug log.
        """
        settings, config, environment = self._config.notify, self._config, self._environment
        if settings is None or self._sender is None or notification.event not in settings.events:
            return

        def work(cancel: Cancel) -> None:
            from ..notify.delivery import deliver  # not for threads without notifications

            try:
                deliver(notification, settings, config, environment, cancel)
            except UncagedError as exc:
                self._info.note("5NT7KQ2W", f"{notification.id} was not delivered: {exc}")

        if not self._sender.send(work):
            self._info.note("9VH3XD6M", f"{notification.id} was not sent: too many wait")


def _message(record: object) -> str:
    """Return the text of a status: its question, its message, or that of its error."""
    if not isinstance(record, dict):
        return ""
    error = record.get("error")
    text = error.get("message") if isinstance(error, dict) else None
    if record.get("control") == "unknown":
        return f"step {record['seq']} was begun and may have been performed"
    return str(record.get("question") or record.get("message") or text or "")
