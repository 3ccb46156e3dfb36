"""Proposals: new versions of flows that a part of the engine makes and a person accepts."""

from __future__ import annotations

from uncaged_bundles.storage.proposals import Proposal

from ..proposals import Proposals, ProposedVersion

__all__ = ["Proposal", "Proposals", "ProposedVersion"]
