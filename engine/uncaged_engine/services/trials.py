"""Trials of bundles: decisions about effects, and what became of them. `Engine.trial` runs one."""

from __future__ import annotations

from ..threads.scratch import is_driven_in_scratch
from ..threads.trial import Decisions, TrialEffect, TrialResult, TriedEffect, shown

__all__ = [
    "Decisions",
    "TrialEffect",
    "TrialResult",
    "TriedEffect",
    "is_driven_in_scratch",
    "shown",
]
