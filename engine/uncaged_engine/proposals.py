"""Decisions about proposals: a proposed bundle is stored without a grant, and becomes the head of
its flow when a person accepts it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ENTROPY_BYTES, BundleHash, ThreadId, new_thread_id
from uncaged_bundles.names import FlowName
from uncaged_bundles.policy import widening
from uncaged_bundles.records import dataclass, replace
from uncaged_bundles.storage.proposals import (
    MAX_THREADS,
    Proposal,
    ProposalDirectory,
    ProposalFiles,
    ProposalsFound,
    ProposalState,
)
from uncaged_bundles.storage.registry import HeadMovedError, Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from .effect_kinds import KNOWN
from .stores.protocol import ChangedMeanwhile

__all__ = ["CONTRADICTIONS", "Proposals", "ProposedVersion"]

CONTRADICTIONS = "contradictions"
"""Key of evidence: sentences on past threads that speak against the version, which is not proved
then.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedVersion:
    """A proposal with both bundles, checked. widened: what the new one allows beside the old one,
    as it is now, without what a person has granted to it already.
    """

    proposal: Proposal
    before: Bundle
    after: Bundle
    widened: tuple[str, ...]

    @property
    def contradictions(self) -> tuple[str, ...]:
        """What speaks against the version by its own evidence."""
        listed = self.proposal.evidence.get(CONTRADICTIONS, [])
        return tuple(map(str, listed)) if isinstance(listed, list) else (str(listed),)


class Proposals:
    """Proposals of one store, in their present states."""

    def __init__(
        self, store: Store, *, registry: Registry | None = None, files: ProposalFiles | None = None
    ) -> None:
        """Args: registry, files: those of a shared store; else those of the directory are used."""
        self._store = store
        self._registry = registry or Registry(store)
        self._files = files or ProposalDirectory(store)

    def found(self) -> ProposalsFound:
        """Return the readable proposals, the newest first, and the problems of the others."""
        found = self._files.all()
        return replace(found, proposals=tuple(map(self._settled, found.proposals)))

    def all(self) -> tuple[Proposal, ...]:
        """Return the readable proposals, the newest first."""
        return self.found().proposals

    def find(self, text: str) -> Proposal:
        """Return the proposal whose id begins with *text*; errors as `ProposalDirectory.find`."""
        return self._settled(self._files.find(text))

    def versions(self, proposal: Proposal) -> ProposedVersion:
        """Return both bundles of a proposal.

        Raises:
            RefusedError: they are not versions of one flow. NotFoundError, DamagedError: a file of
                them is gone or was changed.
        """
        before = self._store.load_bundle(proposal.before, KNOWN)
        after = self._store.load_bundle(proposal.after, KNOWN)
        if before.descriptor.name != after.descriptor.name:
            raise RefusedError(
                f"{proposal.id} mixes flows: {before.hash} is {before.descriptor.name!r}, {after.hash} is {after.descriptor.name!r}"
            )
        granted = self._registry.granted(after)
        policies = before.descriptor.policy, after.descriptor.policy
        widened = () if granted else widening(*policies, KNOWN)
        return ProposedVersion(proposal=proposal, before=before, after=after, widened=widened)

    def propose(
        self,
        flow: FlowName,
        *,
        before: BundleHash,
        after: Bundle,
        by: str,
        evidence: Mapping[str, object],
        threads: Sequence[ThreadId],
        now_ms: int,
        announce: Callable[[Proposal], None] = lambda _proposal: None,
    ) -> Proposal:
        """Store a bundle and propose it as the next version of a flow.

        Args:
            announce: called with a proposal that is new, once it is on disk.
        Returns:
            The proposal. If the same version was proposed before for the same head, it is that one:
            an open one gets the new threads and evidence, a rejected one is unchanged.
        """
        former = self._store.load_bundle(before, KNOWN).descriptor.policy
        proposal = Proposal(
            id=new_thread_id(now_ms, os.urandom(ENTROPY_BYTES)),
            flow=flow,
            before=before,
            after=after.hash,
            by=by,
            created_ms=now_ms,
            policy=widening(former, after.descriptor.policy, KNOWN),
            evidence=evidence,
            threads=tuple(threads)[-MAX_THREADS:],
        )
        with self._files.deciding():
            self._store.put_bundle(after)
            # crash here: a bundle that nothing names; the next run proposes it again
            while True:
                known = self._same(flow, before, after.hash)
                if known is not None and known.state != "open":
                    return known
                if known is not None:
                    joined = tuple(dict.fromkeys((*known.threads, *threads)))[-MAX_THREADS:]
                    proposal = replace(known, evidence=evidence, threads=joined)
                try:
                    self._files.put(proposal)
                    break
                except ChangedMeanwhile:
                    continue  # another machine proposed it, or decided about it, just now
        if known is None:
            # crash here: the proposal is on disk, the notification not sent; it never is
            announce(proposal)
        return proposal

    def accept(
        self,
        text: str,
        *,
        accept: Callable[[tuple[str, ...]], bool],
        now_ms: int,
        contradicted: bool = False,
    ) -> ProposedVersion:
        """Make the proposed version the head of its flow, granted; the former head is in its
        history.

        Args:
            accept: as that of `Engine.add`: called if the policy is wider. contradicted: also a
                version that its evidence contradicts.
        Raises:
            RefusedError: not accepted, or contradicted, or the proposal is not open; it is stale if
                the flow has moved.
        """
        proposal = self._kept_if_stale(self.find(text))
        _require_open(proposal)
        version = self.versions(proposal)
        if version.contradictions and not contradicted:
            raise RefusedError(
                f"proposal {proposal.id} is not proved: {'; '.join(version.contradictions)};"
                " if the new results are right, add --contradicted"
            )
        if version.widened and not accept(version.widened):
            raise RefusedError(
                f"proposal {version.proposal.id} was not accepted: its policy asks for more; read the list above, then add --accept"
            )
        with self._files.deciding():
            # again: another process may have decided while a person was asked
            proposal = self.find(proposal.id)
            _require_open(proposal)
            flow = self._registry.flow(proposal.flow)
            try:
                self._registry.add(
                    proposal.flow,
                    version.after,
                    now_ms=now_ms,
                    source=flow.source if flow is not None else "person",
                    granted=True,
                    replacing=proposal.before,
                )
            except HeadMovedError:
                is_accepted = self._settled(proposal).state == "accepted"
                decided = replace(proposal, state="accepted" if is_accepted else "stale")
                self._put_settled(decided)
                _require_open(decided)
            # crash here: the name is moved, the proposal still says open; readers see it accepted
            accepted = replace(proposal, state="accepted")
            self._put_settled(accepted)
            return replace(version, proposal=accepted)

    def reject(self, text: str) -> Proposal:
        """Decide against a proposal; its bundle stays in the store, and is not proposed again.

        Raises:
            RefusedError: it was accepted.
        """
        with self._files.deciding():
            proposal = self.find(text)
            if proposal.state == "accepted":
                raise RefusedError(
                    f"proposal {proposal.id} was accepted; 'uncaged-workflow rollback {proposal.flow}' returns to the version before"
                )
            rejected = replace(proposal, state="rejected")
            try:
                self._files.put(rejected)
            except ChangedMeanwhile as exc:
                raise RefusedError(
                    f"another machine decided about proposal {proposal.id} just now: it is {self.find(proposal.id).state}"
                ) from exc
            return rejected

    def _kept_if_stale(self, proposal: Proposal) -> Proposal:
        """Write the state of a proposal that became stale since its file was written."""
        if proposal.state == "stale":
            with self._files.deciding():
                self._put_settled(proposal)
        return proposal

    def _put_settled(self, proposal: Proposal) -> None:
        """Write a state that follows from the flow's head, also over that of another machine."""
        try:
            self._files.put(proposal)
        except ChangedMeanwhile:
            self._files.get(proposal.id)
            self._files.put(proposal)

    def _same(self, flow: FlowName, before: BundleHash, after: BundleHash) -> Proposal | None:
        wanted = (flow, before, after)
        return next(
            (
                one
                for one in self.all()
                if (one.flow, one.before, one.after) == wanted and one.state in ("open", "rejected")
            ),
            None,
        )

    def _settled(self, proposal: Proposal) -> Proposal:
        """Return a proposal in the state that follows from its flow's head."""
        if proposal.state != "open":
            return proposal
        flow = self._registry.flow(proposal.flow)
        if flow is not None and flow.hash == proposal.before:
            return proposal
        state: ProposalState = (
            "accepted" if flow is not None and flow.hash == proposal.after else "stale"
        )
        return replace(proposal, state=state)


def _require_open(proposal: Proposal) -> None:
    """Raise RefusedError unless a person can still decide about a proposal."""
    if proposal.state == "open":
        return
    why = {
        "accepted": f"was accepted already; 'uncaged-workflow history {proposal.flow}' shows it",
        "rejected": "was rejected",
        "stale": f"is stale: {proposal.flow} is no longer {proposal.before}, for which it was made; run the flow again for a new one",
    }[proposal.state]
    raise RefusedError(f"proposal {proposal.id} {why}")
