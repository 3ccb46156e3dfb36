"""A running thread as the list shows it, kept up to date from its events, and its document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.api import Engine, Event, ThreadSummary
from uncaged_engine.services.costs import counted_usage
from uncaged_engine.services.documents import summary_document
from uncaged_engine.services.thread_pages import agents_by_role, read_start, read_thread
from uncaged_engine.services.threads import effect_label, intended

MOST_LABEL = 200


@dataclass(slots=True, kw_only=True)
class LiveThread:
    """Summary of a running thread. agents: names by role, "" for the default one. doing: its open
    effect, as `doing_document` gives it.
    """

    summary: ThreadSummary
    agents: Mapping[str, str] = field(default_factory=dict)
    doing: Mapping[str, object] | None = None

    @classmethod
    def read(cls, engine: Engine, bundle: BundleHash, thread: ThreadId, place: int) -> Self:
        """Read a thread that runs up to a place of its journal, from which `apply` goes on, and ask
        its worker what it does.

        Raises:
            NotFoundError: it was removed.
        """
        summary = _running(read_thread(engine.store, bundle, thread, up_to=place))
        agents = agents_by_role(read_start(engine.store, bundle, thread))
        work = {one["threadId"]: one for one in engine.working([bundle], [thread])}
        doing = doing_document(work.get(thread), agents)
        return cls(summary=summary, agents=agents, doing=doing)

    def apply(self, event: Event) -> None:
        """Take in an event of the running thread."""
        body = event.body
        fields: dict[str, Any] = {}
        if event.kind == "record":
            fields["updated_ms"] = body.get("timestamp", self.summary.updated_ms)
            fields["spent"] = self.summary.spent.plus(counted_usage(body))
            if "intent" in body:
                self.doing = self._intended(body)
            elif "seq" in body and not {"sub", "attempt", "void"} & body.keys():
                fields["steps"] = body["seq"]
                self.doing = None
            elif "control" in body or "end" in body:
                self.doing = None
        elif event.kind == "progress" and self.doing is not None and body.get("text"):
            self.doing = {**self.doing, "progress": str(body["text"])[:MOST_LABEL]}
        self.summary = _running(replace(self.summary, **fields))

    def document(self) -> Mapping[str, object]:
        return listed_document(self.summary, self.doing)

    def _intended(self, record: Mapping[str, Any]) -> Mapping[str, object]:
        kind, body = intended(record["intent"])
        role = str(body.get("name", "")) if kind == "role" and isinstance(body, Mapping) else ""
        return {
            "seq": record["seq"],
            "label": effect_label(kind, body)[:MOST_LABEL],
            "agent": (self.agents.get(role) or self.agents.get("")) if role else None,
            "sinceMs": record.get("timestamp"),
        }


def listed_document(
    thread: ThreadSummary, doing: Mapping[str, object] | None
) -> Mapping[str, object]:
    """Return a thread of the list: its summary as the command line prints it, its agents, and what
    it does now.
    """
    return {**summary_document(thread), "agents": list(thread.agents), "doing": doing}


def doing_document(
    work: Mapping[str, Any] | None, agents: Mapping[str, str]
) -> Mapping[str, object] | None:
    """Return what a worker says of a thread: ``label``, ``agent`` if a role is asked, ``sinceMs``,
    and ``queued``, how many of its agents wait for others.
    """
    if work is None or not work.get("doing"):
        return None
    label = str(work["doing"]).partition(",")[0]
    kind, _, role = label.partition(" ")
    asks = kind == "role" and bool(role)
    return {
        "label": (role if asks else label)[:MOST_LABEL],
        "agent": (agents.get(role) or agents.get("")) if asks else None,
        "sinceMs": work.get("sinceMs"),
        "queued": work.get("queued", 0),
    }


def _running(summary: ThreadSummary) -> ThreadSummary:
    """Return a summary with the status that a part of a running thread's journal does not show."""
    return replace(summary, status="running", success=None, message="", undecided=())
