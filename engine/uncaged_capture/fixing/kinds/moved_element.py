"""Element or text of a page that a web flow does not find any more, with the one that takes its
place. What a replay found on the page is in the case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..candidates import FixCandidate
from ..case import FixCase
from ..machine import Machine

__all__ = ["candidates"]


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with the names that its elements have by now."""
    del machine
    page, failed = case.page, case.failed
    if page is None or failed is None:
        if case.recipe.get("kind") == "web":
            yield "a web flow is fixed if its steps find other elements or texts than they name"
        return
    if "problem" in page:
        yield f"its page cannot be looked at: {page['problem']}"
        return
    step, stopped = failed.step.seq, page["stopped"]
    why = _why(stopped)
    healed = [f"step {one['step']}: {one['from']} is {one['to']} by now" for one in page["healed"]]
    if stopped is not None and (not stopped["held"] or stopped["step"] < step):
        found = f"{'; '.join(healed)}; but " if healed else ""
        yield f"{found}{why}"
    elif healed:
        recipe = {**case.recipe, "steps": page["steps"]}
        yield FixCandidate(kind="moved-element", recipe=recipe, why="; ".join(healed))
    else:
        yield f"on the page as it is by now, step {step} finds what it names: run the flow again"


def _why(stopped: Mapping[str, Any] | None) -> str:
    """Return why a replay stopped."""
    if stopped is None:
        return ""
    if stopped["held"]:
        return f"step {stopped['step']} is not done again ({stopped['reason']}), so the page after it is not seen"
    return f"step {stopped['step']} fails on the page as it is by now: {stopped['reason']}"
