"""Calls of flows and models in a thread, before they are linked."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.records import dataclass, field

from .flow_calls import FlowThreads
from .linking import RanFlow

__all__ = ["PerformedCalls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformedCalls:
    """Calls of flows and models in one thread.

    calls: those that ended well. threads: of the called flows. left_out: reasons, by the numbers of
    calls. labels: each call in a few words, by its number. message: the answer to the person.
    answer: all of it. notes: sentences for a person.
    """

    calls: tuple[RanFlow, ...]
    threads: FlowThreads
    left_out: Mapping[int, str]
    labels: Mapping[int, str]
    message: str
    answer: str
    notes: tuple[str, ...] = field(default_factory=tuple)
