"""Proposals: new versions of flows that a part of the engine makes and a person accepts."""

from __future__ import annotations

from uncaged_bundles.storage.proposals import Proposal

from ..proposals import CONTRADICTIONS, Proposals, ProposedVersion

__all__ = ["CONTRADICTIONS", "Proposal", "Proposals", "ProposedVersion"]
