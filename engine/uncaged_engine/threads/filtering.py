"""Filter of a list of threads: the check of a summary, and a clause of SQL for candidates."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from string import ascii_lowercase, ascii_uppercase

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.registry import Registry

from ..state.observe import ThreadSummary
from ..stores.endings import UNSUCCESSFUL, endings_of
from ..stores.protocol import Candidates

_OPEN = ("paused", "waiting", "interrupted", "unknown")
"""Statuses that may turn into one another without a change of the journal."""
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFilter:
    """What a list shows; None and nothing mean: all.

    statuses: any of them; ``unsuccessful``: completed without success. flow: the name under which
    it was started, or a hash. versions: of that flow; a damaged thread of one of them has no name.
    agent: bound to one of its roles. min_cost: in US dollars. longer_than_s: from its start to its
    last line; of a running thread, to now. text: the start of its id, or a part of its flow's name
    or its message; ASCII letters in any case.
    """

    statuses: Collection[str] = ()
    flow: str | None = None
    versions: Collection[BundleHash] = ()
    agent: str | None = None
    min_cost: float | None = None
    longer_than_s: float | None = None
    text: str | None = None

    def fits(self, thread: ThreadSummary, now_ms: int) -> bool:
        """Whether the list shows a thread."""
        until_ms = now_ms if thread.status == "running" else thread.updated_ms
        return (
            self._fits_status(thread)
            and (
                self.flow is None
                or self.flow in (thread.name, thread.hash)
                or (not thread.name and thread.hash in self.versions)
            )
            and (self.agent is None or self.agent in thread.agents)
            and (self.min_cost is None or thread.spent.cost >= self.min_cost)
            and (
                self.longer_than_s is None
                or until_ms - thread.started_ms >= self.longer_than_s * 1000
            )
            and (self.text is None or self._has_text(thread, _lower(self.text)))
        )

    def candidates(self) -> Candidates:
        """Return what a store may leave out of a list."""
        return Candidates(endings=endings_of(self.statuses), flow=self.flow)

    def clause(self) -> tuple[str, list[object]]:
        """Return a clause that each kept summary fits which `fits`, and its values."""
        parts = list(self._parts())
        text = " AND ".join(f"({part})" for part, _ in parts)
        return f"({text or '1'})", [value for _, values in parts for value in values]

    def _parts(self) -> Iterator[tuple[str, list[object]]]:
        if self.statuses:
            marks = ", ".join("?" * len(self.statuses))
            words = f"status IN ({marks})"
            if UNSUCCESSFUL in self.statuses:
                words += " OR success = 0"
            if not set(_OPEN).isdisjoint(self.statuses):
                words += (
                    " OR (sure = 0 AND status IN ('paused', 'waiting', 'interrupted', 'unknown'))"
                )
            yield words, list(self.statuses)
        if self.flow is not None:
            marks = ", ".join("?" * len(self.versions))
            yield (
                f"flow = ? OR hash = ? OR (flow = '' AND hash IN ({marks}))",
                [self.flow, self.flow, *self.versions],
            )
        if self.agent is not None:
            yield "instr(agents, ?)", [json.dumps(self.agent)]
        if self.min_cost is not None:
            yield "cost >= ?", [self.min_cost]
        if self.longer_than_s is not None:
            yield "updated_ms - started_ms >= ?", [self.longer_than_s * 1000]
        if self.text is not None:
            text = _lower(self.text)
            yield (
                "substr(thread, 1, ?) = ? OR instr(lower(flow), ?) OR instr(lower(message), ?)",
                [len(text), text.upper(), text, text],
            )

    def _fits_status(self, thread: ThreadSummary) -> bool:
        return (
            not self.statuses
            or thread.status in self.statuses
            or (thread.success is False and UNSUCCESSFUL in self.statuses)
        )

    def _has_text(self, thread: ThreadSummary, text: str) -> bool:
        return (
            _lower(thread.thread_id).startswith(text)
            or text in _lower(thread.name)
            or text in _lower(thread.message)
        )


def _lower(text: str) -> str:
    """Lower ASCII letters only, as SQLite does."""
    return text.translate(_LOWER)


def versions_of(registry: Registry, flow: str) -> tuple[str, frozenset[BundleHash]]:
    """Return the name or hash that a filter has for a flow, and the flow's versions. A flow that
    was removed is known by its name alone.
    """
    try:
        name, hash = registry.resolve(flow)
    except NotFoundError:
        return flow, frozenset()
    named = registry.flow(name) if name else None
    return name or hash, frozenset(one.hash for one in named.versions) if named else frozenset()
