"""Run of a page's action: its values are entered, then the page is looked at again, then the last
operation is performed after a yes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from uncaged_bundles.errors import RefusedError

from ..goal.forms import read_forms
from ..problems import BrowserProblem
from .plan import ActionPlan

__all__ = ["run_action"]

SETTLE_S = 5.0
Perform = Callable[[Mapping[str, object]], Any]
"""Performs an operation and returns its answer, or raises BrowserProblem."""


def run_action(
    plan: ActionPlan, perform: Perform, confirm: Callable[[str], None]
) -> dict[str, object]:
    """Perform an action.

    Args:
        confirm: asks a person; raises if the answer is no.
    Returns:
        ``{"action", "url", "title", "done", "text"?, "left"?}``; done is False if values were only
        filled in.
    Raises:
        BrowserProblem: an operation failed. RefusedError: the page changed what the form sends, or
            does not take a value.
    """
    if plan.question:
        confirm(plan.question)
    answer: Any = None
    for body in plan.bodies:
        if body is plan.last and plan.values and plan.action.kind == "form":
            _check_again(plan, perform)
        answer = perform(body)
    with suppress(BrowserProblem):  # a page that never ends loading
        perform({"do": "wait", "for": "load", "timeout_s": SETTLE_S})
    page = perform({"do": "address"})
    found = answer if isinstance(answer, Mapping) else {}
    return {
        "action": plan.action.name,
        "url": page["url"],
        "title": page["title"],
        "done": plan.last is not None,
        **{key: found[key] for key in ("text", "characters", "left") if key in found},
    }


def _check_again(plan: ActionPlan, perform: Perform) -> None:
    """Look at a form after it was filled in."""
    answer = perform({"do": "actions", "name": plan.action.name})
    [form] = read_forms(answer)
    targets = {form.action, *(button.action for button in form.buttons)}
    if plan.target not in targets or answer["action"].get("host", "") != plan.action.host:
        raise RefusedError(
            f"{plan.action.name} was filled in and then changed where it sends; nothing was sent"
        )
    wrong = [f"{one.label}: {one.problem}" for one in form.fields if not one.valid]
    if wrong:
        raise RefusedError(f"the page does not take a value; nothing was sent: {'; '.join(wrong)}")
