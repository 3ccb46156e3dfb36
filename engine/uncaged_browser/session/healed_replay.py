"""Replay of a web flow in a fresh context on its page as it is by now: elements that are not found
by their names are searched, as they are while a flow runs. Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.carried.web import fill
from uncaged_bundles.records import dataclass, field

from ..expectations import described
from ..healing.drift import begin_comparison
from ..healing.healed import Healing
from ..healing.performing import Rejected, perform_healed, searched
from ..healing.recipes import healed_steps, values_in_target
from ..healing.search import HealingResult, begin_search, run_search
from ..operations import Operation, read_operation
from ..problems import BrowserProblem
from .proof_page import NotRepeated, ProofPage

__all__ = ["HealedReplay", "replay_healed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealedReplay:
    """Replay of a flow's steps.

    steps: with the new names and expectations. healed: by number, from 0. step: the first one that
    was not done, from 1, None if all were; held: it would have sent something, otherwise it failed;
    reason: why, with the element that was not used.
    """

    steps: Sequence[Mapping[str, object]]
    healed: Mapping[int, tuple[Healing, ...]]
    step: int | None = None
    held: bool = False
    reason: str = ""

    def document(self) -> dict[str, object]:
        """Return the replay as JSON data."""
        return {
            "steps": [dict(step) for step in self.steps],
            "healed": [
                {
                    "step": number + 1,
                    "from": one.before,
                    "to": one.after,
                    "score": one.score,
                    "why": list(one.why),
                }
                for number, healed in sorted(self.healed.items())
                for one in healed
            ],
            "stopped": None
            if self.step is None
            else {
                "step": self.step,
                "held": self.held,
                "reason": self.reason,
            },
        }


class _Failed(Exception):
    """A step that cannot be done on the page as it is."""


def replay_healed(
    page: ProofPage,
    steps: Sequence[Mapping[str, Any]],
    values: Mapping[str, Any],
    is_rejected: Rejected,
) -> HealedReplay:
    """Perform the steps of a recipe until one fails or would send something.

    Args:
        values: of the parameters. is_rejected: for healings that are not used.
    Raises:
        SessionGone: the browser ended.
    """
    run = _Replay(page=page, steps=steps, values=values, is_rejected=is_rejected)
    stopped: dict[str, Any] = {}
    for number in range(len(steps)):
        try:
            run.perform(number)
        except NotRepeated as exc:
            stopped = {"step": number + 1, "held": True, "reason": str(exc)}
        except _Failed as exc:
            stopped = {"step": number + 1, "reason": str(exc)}
        if stopped:
            break
    return HealedReplay(steps=healed_steps(steps, run.healed, values), healed=run.healed, **stopped)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replay:
    page: ProofPage
    steps: Sequence[Mapping[str, Any]]
    values: Mapping[str, Any]
    is_rejected: Rejected
    healed: dict[int, tuple[Healing, ...]] = field(default_factory=dict)

    def perform(self, number: int) -> None:
        """Perform a step, perhaps with another element or expectation.

        Raises:
            NotRepeated: it would send something; its element is on the page. _Failed: it failed.
        """
        body = self._body(number)
        try:
            answer = self._answer(number, body)
        except BrowserProblem as exc:
            raise _Failed(str(exc)) from exc
        drift = answer.get("drift") if isinstance(answer, Mapping) else None
        if not drift:
            return
        following = self._operation(number + 1) if number + 1 < len(self.steps) else None
        after = values_in_target(self.steps[number + 1], self.values) if following else ()
        operation = read_operation(body)
        comparison = begin_comparison(operation, drift, following, self._operations(), after)
        found = run_search(comparison, self.page.look)
        if found is None or self.is_rejected((found,)):
            raise _Failed(f"the page differs: {described(drift)}")
        self.healed[number] = (*self.healed.get(number, ()), found)

    def _answer(self, number: int, body: Mapping[str, Any]) -> Any:
        operation = read_operation(body)

        def search() -> HealingResult:
            values = values_in_target(self.steps[number], self.values)
            begun = begin_search(operation, self._operations(), values)
            return searched(begun, self.page.look, self.is_rejected)

        return perform_healed(
            operation,
            body,
            perform=lambda changed: self.page.perform(number + 1, changed),
            search=search,
            use=lambda targets: self.healed.update({number: tuple(targets)}),
        )

    def _body(self, number: int) -> dict[str, Any]:
        step = {key: one for key, one in self.steps[number].items() if key != "keep"}
        return dict(shapes.mapping(fill("", step, self.values), ("steps", number)))

    def _operation(self, number: int) -> Operation:
        return read_operation(self._body(number))

    def _operations(self) -> list[Operation]:
        return [self._operation(number) for number in range(len(self.steps))]
