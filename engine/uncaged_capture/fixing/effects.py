"""The effects `prove` and `propose` of the flow `fix-flow`.

``{"prove": {"thread": id}}`` checks the ``flow.json`` in the thread's worktree, a changed version
of the flow that failed in thread *id*. ``{"propose": {"thread": id}}`` proposes the version whose
proof held last.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import BundleError, NotFoundError, RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.limits import Limits
from uncaged_bundles.records import dataclass
from uncaged_engine.api import Engine
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.notifications import about_proposal
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.services.proposals import Proposals

from .failed import FLOW_FILE, PAGE_FILE, FailedThread, failed_thread, files_of
from .proof import changed_bundle, prove
from .repeated import BY, repeated_failure
from .scratch import changed_files, read_file

__all__ = ["ProposeHandler", "ProveHandler", "last_proof"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixBody:
    """Body of both effects. thread: the failed one."""

    thread: str


class ProveLimits(Limits):
    meaning = (
        "replay your past threads with a changed version of a failed flow, and try that version out"
    )


class ProposeLimits(Limits):
    meaning = "propose a changed version of a failed flow, which you accept or reject"


class ProveHandler(Handler):
    kind = "prove"
    limits = ProveLimits
    recovery: Rule = "repeat"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        asked = read_body("prove", FixBody, body)
        if isinstance(asked, Failure):
            return asked
        engine = Engine(context.store)
        try:
            failed = failed_thread(engine, asked.thread)
            found = prove(
                engine,
                failed,
                _flow_file(context),
                ignored=[
                    one
                    for one in changed_files(_tree(context), files_of(failed, context.directory))
                    if one not in (FLOW_FILE, PAGE_FILE)
                ],
                directory=context.directory,
                environment=context.environment,
                cancel=context.cancel,
            )
        except (NotFoundError, RefusedError, BundleError) as exc:
            return Failure.of("prove", f"prove: {exc}")
        return Answer(fields={"outcome": found.document()})


class ProposeHandler(Handler):
    kind = "propose"
    limits = ProposeLimits
    recovery: Rule = "repeat"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        asked = read_body("propose", FixBody, body)
        if isinstance(asked, Failure):
            return asked
        engine = Engine(context.store)
        try:
            failed = failed_thread(engine, asked.thread)
            after = changed_bundle(_flow_file(context), failed)
        except (NotFoundError, RefusedError, BundleError) as exc:
            return Failure.of("propose", f"propose: {exc}")
        proof = last_proof(engine, context.thread_id, asked.thread)
        if proof is None or proof["held"] is not True or proof["to"] != after.hash:
            return Failure.of("propose", "propose: no proof of this version held")
        proposals = Proposals(context.store)
        if (reason := repeated_failure(proposals, failed, context.clock_ms())) is not None:
            return Failure.of("propose", f"propose: {reason}")
        proposal = proposals.propose(
            failed.flow,
            before=failed.bundle.hash,
            after=after,
            by=BY,
            evidence=proof["evidence"],
            threads=[failed.id],
            now_ms=context.clock_ms(),
            announce=lambda one: context.thread.notify(about_proposal(one)),
        )
        return Answer(fields={"outcome": _document(failed, proposal.id, proposal.state)})


def _document(failed: FailedThread, proposal: str, state: str) -> Mapping[str, object]:
    return {
        "proposalId": proposal,
        "flow": failed.flow,
        "state": state,
        "threadId": failed.id,
        "keep": failed.case.fork_at,
    }


def _tree(context: EffectContext) -> Path:
    """Return the thread's worktree, where its roles work."""
    return context.store.work / context.thread_id


def _flow_file(context: EffectContext) -> str:
    """Return the text of the changed recipe.

    Raises:
        BundleError: it cannot be read.
    """
    try:
        return read_file(_tree(context) / FLOW_FILE)
    except (OSError, ValueError) as exc:
        raise BundleError(f"{FLOW_FILE} cannot be read: {exc}") from exc


def last_proof(engine: Engine, thread: ThreadId, failed: str) -> Mapping[str, Any] | None:
    """Return the outcome of a thread's last ``prove`` of a failed thread, as its journal has it.
    Other effects do not count, as their answers may look like a proof.
    """
    asked, found = set(), None
    for record in engine.thread(thread).records:
        if record.get("intent") == {ProveHandler.kind: {"thread": failed}}:
            asked.add(record["seq"])
        elif record.get("seq") in asked and isinstance(record.get("outcome"), Mapping):
            found = record["outcome"]
    return found
