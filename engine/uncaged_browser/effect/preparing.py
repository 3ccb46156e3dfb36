"""Start and success of a thread with browser effects: its mode of healing, and the proposal of a
version with the elements that were found by likeness.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_engine.door.effects import ThreadContext
from uncaged_engine.door.preparing import NewThread, Preparation

__all__ = ["BrowserPreparation"]

BY = "healing"


class BrowserPreparation(Preparation):
    def prepare(self, thread: NewThread) -> Mapping[str, Any]:
        """Return the mode of healing if the caller chose one."""
        return {} if thread.options.heal is None else {"heal": thread.options.heal}

    def conclude(self, thread: ThreadContext) -> None:
        """Propose a version with the healed targets; in the mode ``apply`` accept it, unless its
        policy is wider.
        """
        steps = [step for step in thread.steps() if "outcome" in step]
        if not any(_was_healed(step) for step in steps):
            return  # without the imports below
        from uncaged_bundles.names import parse_flow_name
        from uncaged_bundles.storage.registry import Registry
        from uncaged_engine.door.notifications import about_proposal
        from uncaged_engine.services.proposals import Proposals

        from ..healing.versions import evidence_of, healed_version
        from .healing import heal_mode

        name = parse_flow_name(str(thread.start["name"]))
        flow = Registry(thread.store).flow(name)
        version = healed_version(thread.bundle, steps, thread.start)
        if flow is None or flow.hash != thread.bundle.hash or version is None:
            return
        now_ms = thread.clock_ms()
        proposals = Proposals(thread.store)
        proposal = proposals.propose(
            name,
            before=thread.bundle.hash,
            after=version,
            by=BY,
            evidence=evidence_of(steps),
            threads=[thread.thread_id],
            now_ms=now_ms,
            announce=lambda one: thread.notify(about_proposal(one)),
        )
        if heal_mode(thread.start, thread.config) == "apply" and proposal.state == "open":
            try:
                proposals.accept(proposal.id, accept=lambda _sentences: False, now_ms=now_ms)
            except RefusedError:
                return  # wider, or decided meanwhile: it stays as a person finds it


def _was_healed(step: Mapping[str, object]) -> bool:
    outcome = step["outcome"]
    return isinstance(outcome, Mapping) and "healed" in outcome
