"""Candidates: flows made of what an agent did, before a person has seen and saved them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from uncaged_engine.api import Engine
from uncaged_engine.services.trials import TrialEffect

from .other_values import OtherRun
from .proving import TrialProof
from .values import Parameter
from .wording import Wording

__all__ = ["FlowCandidate", "MayAct"]


class MayAct(Protocol):
    """Decision of a person about an effect of a proof that is not harmless."""

    def __call__(self, effect: TrialEffect) -> bool: ...


class FlowCandidate(Protocol):
    """A flow that a form has made of a thread.

    wording: name, description, patterns and examples. steps: what it does, one line each. left_out:
    calls that are no part of it, with the reason. notes: what a person should know about it, one
    sentence each. parameters: the values that a caller may choose. definition: the text of a file
    from which `build` makes the flow; "" if it is exported as a recipe.
    """

    @property
    def wording(self) -> Wording: ...
    @property
    def steps(self) -> Sequence[str]: ...
    @property
    def left_out(self) -> Sequence[str]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def parameters(self) -> Sequence[Parameter]: ...

    @property
    def definition(self) -> str: ...

    def reworded(self, wording: Wording) -> FlowCandidate:
        """Return the same flow with another wording."""

    def source(self, remark: str = "") -> bytes:
        """Return the bundle. remark: a sentence at the end of its description.

        Raises:
            BundleError: it cannot be a bundle.
        """

    def prove(self, engine: Engine, may_act: MayAct) -> TrialProof:
        """Prove the flow. Nothing is performed that is not harmless, unless *may_act* says so."""

    def run_with(self, engine: Engine, changed: Mapping[str, object]) -> OtherRun:
        """Run the flow with other values than the recorded ones. Nothing is performed that is not
        harmless.

        Args:
            changed: the values that differ, by the names of their parameters.
        Raises:
            UsageError: the flow does not take these values. NotFoundError: the files are gone.
        """
