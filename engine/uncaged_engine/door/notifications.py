"""Notifications of a person about threads and proposals, before they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from uncaged_bundles.clean import clean_line, shorten
from uncaged_bundles.records import dataclass

from ..settings.config import NotifyEvent

if TYPE_CHECKING:
    from uncaged_bundles.storage.proposals import Proposal

__all__ = ["Event", "Notification", "about_proposal"]

Event = NotifyEvent | Literal["test"]
_MAX_MESSAGE_CHARACTERS = 2_000
_NEXT_STEPS: Mapping[Event, str] = {
    "waiting": "uncaged-workflow answer {subject}",
    "failed": "uncaged-workflow thread show {subject}",
    "unknown": "uncaged-workflow thread show {subject}",
    "limit": "uncaged-workflow thread show {subject}",
    "interrupted": "uncaged-workflow resume {subject}",
    "proposal": "uncaged-workflow proposal show {subject}",
    "schedule": "uncaged-workflow schedule show {subject}",
    "test": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One event. subject: the id of the thread or the proposal, or the schedule's name. message:
    text of a bundle, an agent or the engine, without secrets. parent: the thread that started this
    one.
    """

    event: Event
    subject: str
    flow: str
    message: str
    timestamp_ms: int
    parent: str | None = None

    @property
    def id(self) -> str:
        """Return an id that no other notification of the store has."""
        return f"{self.subject}-{self.event}-{self.timestamp_ms}"

    @property
    def title(self) -> str:
        """Return one line: which flow, and what happened."""
        return clean_line(f"{self.flow or 'uncaged-workflow'}: {self.event}")

    @property
    def next_step(self) -> str:
        """Return the command that a person would run next."""
        return _NEXT_STEPS[self.event].format(subject=self.subject)

    def document(self) -> dict[str, object]:
        """Return the notification as JSON data."""
        return {
            "id": self.id,
            "event": self.event,
            "subject": self.subject,
            "flow": self.flow,
            "message": shorten(self.message, _MAX_MESSAGE_CHARACTERS),
            "nextStep": self.next_step,
            "parentThreadId": self.parent,
            "timestampMs": self.timestamp_ms,
        }


def about_proposal(proposal: Proposal) -> Notification:
    """Return the notification of a new proposal."""
    return Notification(
        event="proposal",
        subject=proposal.id,
        flow=proposal.flow,
        message=f"a new version is proposed by {proposal.by}",
        timestamp_ms=proposal.created_ms,
    )
