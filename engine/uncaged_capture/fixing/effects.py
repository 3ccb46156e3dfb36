"""The effects `prove` and `propose` of the flow `fix-flow`.

``{"prove": {"thread": id}}`` checks the ``flow.json`` in the thread's worktree, a changed version
of the flow that failed in thread *id*. ``{"propose": {"thread": id}}`` proposes the version whose
proof held last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import (
    BundleError,
    DamagedError,
    NotFoundError,
    RefusedError,
    UsageError,
)
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.limits import Limits
from uncaged_bundles.records import dataclass
from uncaged_engine.api import Engine
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.notifications import about_proposal
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.services.registry import handler_for
from uncaged_engine.services.thread_engine import thread_engine

from ..workspaces import FreshWorkspace
from ..workspaces import files_of as step_files
from .failed import FLOW_FILE, PAGE_FILE, FailedThread, directory_of, failed_thread, files_of
from .proof import changed_bundle, prove
from .repeated import BY, repeated_failure
from .scratch import changed_files, read_file

__all__ = ["ProposeHandler", "ProveHandler", "last_proof"]

UNUSABLE = (NotFoundError, RefusedError, BundleError, DamagedError, UsageError)
"""Errors of a thread that cannot be fixed, or of its files."""


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
        try:
            with thread_engine(context.store) as engine, _tree(context) as tree:
                failed = failed_thread(engine, asked.thread)
                former = files_of(failed, directory_of(engine, context.directory))
                changed = changed_files(tree, former)
                found = prove(
                    engine,
                    failed,
                    _flow_file(tree),
                    ignored=[one for one in changed if one not in (FLOW_FILE, PAGE_FILE)],
                    directory=context.directory,
                    environment=context.environment,
                    cancel=context.cancel,
                )
        except UNUSABLE as exc:
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
        try:
            with thread_engine(context.store) as engine, _tree(context) as tree:
                return _proposed(engine, failed_thread(engine, asked.thread), tree, context)
        except UNUSABLE as exc:
            return Failure.of("propose", f"propose: {exc}")


def _proposed(engine: Engine, failed: FailedThread, tree: Path, context: EffectContext) -> Outcome:
    """Propose the version in a worktree, if its proof held.

    Raises:
        BundleError: as `changed_bundle`.
    """
    after = changed_bundle(_flow_file(tree), failed)
    proof = last_proof(engine, context.thread_id, failed.id)
    if proof is None or proof["held"] is not True or proof["to"] != after.hash:
        return Failure.of("propose", "propose: no proof of this version held")
    proposals = engine.proposals
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


@contextmanager
def _tree(context: EffectContext) -> Iterator[Path]:
    """Yield the thread's worktree, where its roles work; in a worker that took the thread over
    after their last step, a directory with the files that this step left.

    Raises:
        NotFoundError: they are gone.
    """
    tree = context.store.work / context.thread_id
    if tree.exists():
        yield tree
        return
    start, steps, environment = context.start, context.steps(), context.environment
    role = handler_for("role")
    with FreshWorkspace.fresh(
        step_files(start, steps, context.seq),
        environment,
        role.repository(context.store, context.thread_id, start, steps, environment),
    ) as workspace:
        yield workspace.directory


def _flow_file(tree: Path) -> str:
    """Return the text of the changed recipe.

    Raises:
        BundleError: it cannot be read.
    """
    try:
        return read_file(tree / FLOW_FILE)
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
