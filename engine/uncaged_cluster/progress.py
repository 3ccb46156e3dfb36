"""Progress of effects in flight, as notifications of the database (`ThreadProgress`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from uncaged_bundles.ids import ThreadId
from uncaged_engine.services.shared import Report

from .notifications import Notifications
from .session import DatabaseSession

MOST_BYTES = 7900
"""Most bytes of a notification, of which PostgreSQL takes 7,999."""


class ProgressChannels:
    """One channel for each thread of a schema."""

    def __init__(self, session: DatabaseSession, notifications: Notifications) -> None:
        self._session = session
        self._notifications = notifications

    def send(self, reports: Mapping[ThreadId, Sequence[Report]]) -> None:
        channels = [self._channel(thread) for thread in reports]
        payloads = [newest_fitting(found) for found in reports.values()]
        self._session.query(
            "SELECT pg_notify(channel, payload)"
            " FROM unnest(%s::text[], %s::text[]) AS told (channel, payload)",
            [channels, payloads],
        )

    @contextmanager
    def follow(self, thread: ThreadId) -> Iterator[Callable[[], list[Report]]]:
        with closing(self._notifications.subscribe(self._channel(thread))) as subscription:

            def reports() -> list[Report]:
                found: list[Report] = []
                while subscription.payloads:
                    found += _parsed(subscription.payloads.popleft())
                return found

            yield reports

    def _channel(self, thread: ThreadId) -> str:
        return self._session.channel("progress", thread)


def newest_fitting(reports: Sequence[Report]) -> str:
    """Return a notification with as many of the newest reports as it can hold."""
    fitting: list[str] = []
    size = 2
    for report in reversed(reports):
        text = json.dumps(report, separators=(",", ":"))
        size += len(text) + 1
        if size > MOST_BYTES:
            break
        fitting.insert(0, text)
    return f"[{','.join(fitting)}]"


def _parsed(payload: str) -> list[Report]:
    """Return the reports of a notification. Any user of the database can send one."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
