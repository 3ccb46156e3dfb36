"""`/api/proposals`: proposed versions of flows, with their evidence."""

from __future__ import annotations

from typing import Any

from uncaged_engine.api import Engine
from uncaged_engine.services.flows import compare

from .endpoints import ApiDocument, ApiEndpoint, Asked, ConflictError, Fields


class ProposalQuery(Fields):
    flow: str | None = None
    all: bool = False


class ProposalList(ApiDocument):
    proposals: list[dict[str, Any]]
    problems: list[str]


class AcceptBody(Fields):
    """granted: the sentences about further permissions that the person saw and accepts.
    contradicted: the person saw that past threads speak against the version.
    """

    granted: tuple[str, ...] = ()
    contradicted: bool = False


class ProposalDecision(ApiDocument):
    proposal_id: str
    flow: str
    state: str
    hash: str


def proposals(engine: Engine, asked: Asked) -> object:
    kept = engine.proposals.found()
    return {
        "proposals": [
            one.document()
            for one in kept.proposals
            if asked.query.flow in (None, one.flow) and (asked.query.all or one.state == "open")
        ],
        "problems": list(kept.problems),
    }


def proposal(engine: Engine, asked: Asked) -> object:
    kept = engine.proposals
    found = kept.find(asked.path["proposal"])
    version = kept.versions(found)
    return {
        **found.document(),
        "widened": list(version.widened),
        "contradictions": list(version.contradictions),
        "sections": {one.title: list(one.lines) for one in compare(version.before, version.after)},
    }


def accept(engine: Engine, asked: Asked) -> object:
    kept = engine.proposals
    granted = frozenset(asked.body.granted)
    found = kept.find(asked.path["proposal"])
    lacking = [one for one in kept.versions(found).widened if one not in granted]
    if lacking:
        message = "it asks for more than was accepted; read the list, then accept it"
        raise ConflictError(message, {"widened": lacking})
    version = kept.accept(
        found.id,
        accept=lambda widened: set(widened) <= granted,
        now_ms=engine.clock_ms(),
        contradicted=asked.body.contradicted,
    )
    return _decision(version.proposal.document(), version.proposal.after)


def reject(engine: Engine, asked: Asked) -> object:
    found = engine.proposals.reject(asked.path["proposal"])
    return _decision(found.document(), found.before)


def _decision(document: Any, bundle: str) -> object:
    return {**{key: document[key] for key in ("proposalId", "flow", "state")}, "hash": bundle}


ENDPOINTS = (
    ApiEndpoint(
        method="GET",
        path="/api/proposals",
        summary="Proposed versions of flows",
        handler=proposals,
        query=ProposalQuery,
        answer=ProposalList,
    ),
    ApiEndpoint(
        method="GET",
        path="/api/proposals/{proposal}",
        summary="A proposal: permissions that it adds, evidence, difference",
        handler=proposal,
    ),
    ApiEndpoint(
        method="POST",
        path="/api/proposals/{proposal}/accept",
        summary="Make the proposed version the current one",
        handler=accept,
        body=AcceptBody,
        answer=ProposalDecision,
    ),
    ApiEndpoint(
        method="POST",
        path="/api/proposals/{proposal}/reject",
        summary="Decide against a proposal",
        handler=reject,
        answer=ProposalDecision,
    ),
)
