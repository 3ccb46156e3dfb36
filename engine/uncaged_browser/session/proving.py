"""Proof run of a recorded flow: its steps in a fresh context, before it is saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from uncaged_bundles import shapes
from uncaged_bundles.carried.web import fill
from uncaged_bundles.records import dataclass

from ..expectations import described
from ..problems import BrowserProblem
from .client import SessionClient
from .proof_page import NotRepeated, ProofPage

__all__ = ["FlowProof", "ProofRun"]

ProofState = Literal["proved", "unproved", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowProof:
    """Outcome of a proof. step: the first one that was not proved, from 1. reason: why. refused:
    hosts that pages asked for and that the flow may not reach.
    """

    state: ProofState
    step: int | None = None
    reason: str = ""
    refused: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        """Return the proof as JSON data."""
        return {
            "state": self.state,
            **({} if self.step is None else {"step": self.step, "reason": self.reason}),
            **({"refused": list(self.refused)} if self.refused else {}),
        }


class ProofRun:
    """One run of a flow's steps with the recorded values."""

    def __init__(
        self,
        client: SessionClient,
        limits: Mapping[str, object],
        *,
        secret_of: Callable[[str], str],
        may_send: Callable[[int, str], bool],
    ) -> None:
        """Args: as for `ProofPage`."""
        self._page = ProofPage(client, limits, secret_of=secret_of, may_send=may_send)

    def run(self, steps: Sequence[object], values: Mapping[str, object]) -> FlowProof:
        """Perform the steps until one fails, or would send something without a yes.

        Raises:
            SessionGone: the browser ended.
        """
        with self._page as page:
            for number, step in enumerate(steps, 1):
                body = dict(shapes.mapping(fill("", step, values), ("steps", number)))
                state, reason = self._step(number, body)
                if state != "proved":
                    return FlowProof(
                        state=state, step=number, reason=reason, refused=page.refused()
                    )
            return FlowProof(state="proved", refused=page.refused())

    def _step(self, number: int, body: dict[str, Any]) -> tuple[ProofState, str]:
        body.pop("keep", None)
        try:
            answer = self._page.perform(number, body)
        except NotRepeated as exc:
            return "unproved", str(exc)
        except BrowserProblem as exc:
            return "failed", str(exc)
        drift = answer.get("drift") if isinstance(answer, Mapping) else None
        return ("failed", f"the page differs: {described(drift)}") if drift else ("proved", "")
