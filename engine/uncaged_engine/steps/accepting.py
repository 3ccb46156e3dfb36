"""Acceptance of a request to drive a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store

from ..journal import lines
from ..journal.journal import Journal
from ..journal.origin import unbound
from ..journal.recover import extend
from ..state.observe import facts_of
from ..state.states import NEXT_STEP, allowed, refusal, status
from ..state.undecided import require_decision, undecided


def accept(
    journal: Journal,
    store: Store,
    place: tuple[BundleHash, ThreadId],
    resume: Mapping[str, Any] | None,
    now_ms: int,
) -> None:
    """Accept a request; its resume record is flushed when this returns.

    Args:
        resume: the fields of that record; None for a thread that simply goes on.
    Raises:
        RefusedError: the thread's state forbids it, perhaps because of a request that came first.
    """
    (bundle, thread), history = place, journal.history
    if resume is None and history.end is None and history.paused:
        raise RefusedError(f"thread {thread} was paused just now; {NEXT_STEP['paused']}")
    state = status(facts_of(history, store, bundle, journal.blobs), locked=False)
    if history.end is not None if resume is None else not allowed(state, "resume"):
        raise RefusedError(refusal(state, "resume", thread))
    _require_bound(journal, thread, resume or {})
    if resume is not None:
        require_decision(thread, state, undecided(history, store, bundle, journal.blobs), resume)
        # flushed before the answer to the client: a resume that was confirmed is never lost
        extend(history, journal.append(lines.control("resume", resume, now_ms)))
        journal.flush()


def _require_bound(journal: Journal, thread: ThreadId, resume: Mapping[str, Any]) -> None:
    """Refuse an imported thread until a person has bound it: its agents, workspace and limits are
    a stranger's choice.
    """
    origin = journal.origin()
    if origin is not None and "binding" not in resume and origin.binding(journal.history) is None:
        raise RefusedError(unbound(thread))
