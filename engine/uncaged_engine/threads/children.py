"""Options and outcome of a child thread, as the effect that starts it needs them."""

from __future__ import annotations

from collections.abc import Mapping

from ..door.effects import EffectContext
from ..door.outcomes import Answer, Failure, Outcome
from ..door.preparing import RunOptions
from ..state.observe import ThreadView

__all__ = ["options_of", "outcome_of"]


def options_of(context: EffectContext, *, ran_s: float = 0.0) -> RunOptions:
    """Return the rest of the parent's limits. ran_s: the child's running time so far, which its own
    time limit includes.
    """
    left = context.left()
    tokens, seconds = left.get("maxTokens"), left.get("maxSeconds")
    return RunOptions(
        max_cost=left.get("maxCost"),
        max_tokens=None if tokens is None else int(tokens),
        max_seconds=None if seconds is None else seconds + ran_s,
        parent_workspace=_carried_workspace(context),
        directory=context.directory,
        environment=context.environment,
    )


def _carried_workspace(context: EffectContext) -> Mapping[str, object] | None:
    """Return the workspace of a thread of a shared store."""
    workspace = context.start.get("workspace") if context.store.is_shared else None
    return workspace if isinstance(workspace, Mapping) else None


def outcome_of(child: ThreadView, status: str) -> Outcome:
    """Return the outcome of the effect that started a child which has ended."""
    usage = {"usage": child.spent.document()} if child.spent.document() else {}
    identity = {"threadId": child.summary.thread_id, "hash": child.summary.hash}
    if status != "completed" or child.end is None:
        return Failure.of(
            "flow",
            f"{child.summary.name} {status}: {child.summary.message or 'no message'}",
            **identity,
            **usage,
        )
    result = child.end.get("result")
    fields = result if isinstance(result, Mapping) else {"data": result}
    summary = {
        "success": fields.get("success", True),
        "message": fields.get("message", ""),
        "data": fields.get("data"),
    }
    return Answer(fields={"outcome": {**identity, **summary}, **usage})
