"""``reason`` does what one sentence asks for: a model with all enabled flows as tools."""

from __future__ import annotations

from uncaged_bundles.authoring import END, START, View, Workflow
from uncaged_roles.assistant import role as assistant


def result(ctx: View) -> dict[str, object]:
    """Return the assistant's answer."""
    meta = ctx.steps[-1].meta
    return {"success": meta.status == "done", "message": meta.message, "data": None}


workflow = Workflow(
    name="reason",
    description="Does what one sentence asks for with a model that has all enabled flows as tools.",
    roles=(assistant,),
    moderator={START: "assistant", "assistant": {"done": END, "failed": END}},
    result=result,
    policy={"role": {"tools": ["flow:*"]}},
)
