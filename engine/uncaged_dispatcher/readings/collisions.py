"""Collisions: several readings of one sentence, and the strategies that decide among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from uncaged_engine.services.collisions import CollisionSettings

from .candidates import CandidateReading
from .preferences import Preferences


def colliding(
    candidates: Sequence[CandidateReading], settings: CollisionSettings
) -> list[CandidateReading]:
    """Return the candidates that collide with the first, itself included; each call once.

    candidates: those that can run, best first. By ``flows`` every reading as other flows collides;
    by ``scores`` only one that is as good as the first.
    """
    first = candidates[0]
    found: list[CandidateReading] = []
    for candidate in candidates:
        tied = candidate.order == first.order
        other_flow = settings.kind == "flows" and candidate.flows != first.flows
        if (tied or other_flow) and all(candidate.calls != one.calls for one in found):
            found.append(candidate)
    return found


def decide(
    sentence: str,
    candidates: Sequence[CandidateReading],
    settings: CollisionSettings,
    preferences: Preferences,
) -> tuple[CandidateReading | None, bool]:
    """Return the chosen one of colliding candidates, None if a person must choose, and whether it
    is a remembered choice.
    """
    strategy = settings.strategy
    several = any(len(one.calls) > 1 for one in candidates)
    if several and settings.several == "priority" and strategy in ("ask", "remembered-or-ask"):
        strategy = "priority"
    match strategy:
        case "first-match":
            return candidates[0], False
        case "score-rank":
            return min(candidates, key=lambda one: (_score(one), _place(one, settings))), False
        case "priority":
            return min(candidates, key=lambda one: (_place(one, settings), one.order)), False
        case "ask":
            return None, False
        case "remembered-or-ask":
            found = preferences.find(sentence, candidates)
            return found, found is not None
        case _:
            assert_never(strategy)


def _score(candidate: CandidateReading) -> tuple[int, int, int]:
    """Return the place by parts and free text alone; the least is the best."""
    rank = candidate.rank
    return rank.fewer_parts, rank.fewer_required_parts, rank.free_text


def _place(candidate: CandidateReading, settings: CollisionSettings) -> tuple[int, int]:
    """Return the place of a candidate's pack: in the order of the settings, then by priority."""
    order = settings.order
    named = order.index(candidate.pack) if candidate.pack in order else len(order)
    return named, -candidate.priority
