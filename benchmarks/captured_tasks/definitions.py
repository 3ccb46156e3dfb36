"""Flows with one role that a model plays: with a workspace, and with the flows of a service."""

from __future__ import annotations

from pathlib import Path

from .rule import TOOLS

__all__ = ["CALLER", "WORKER", "write_definition"]

WORKER, CALLER = "worker", "caller"
TEMPLATE = '''"""Flow with one role that does a task."""

from uncaged_bundles.authoring import END, START, Role, View, Workflow

ROLE = Role(
    name="worker",
    description="Does the task.",
    system_prompt="Do what the task asks for with your tools.",
    extract_prompt="Take the answer for the person as message, letter for letter.",
    schema={{
        "type": "object",
        "properties": {{"status": {{"enum": ["done", "failed"]}}, "message": {{"type": "string"}}}},
        "required": ["status", "message"],
    }},
)


def result(ctx: View) -> dict[str, object]:
    """Return the answer of the role."""
    meta = ctx.steps[-1].meta
    return {{"success": meta.status == "done", "message": meta.message, "data": None}}


workflow = Workflow(
    name="{name}",
    description="Does one task.",
    roles=(ROLE,),
    moderator={{START: "worker", "worker": {{"done": END, "failed": END}}}},
    result=result,
    policy={{"role": {policy!r}}},
)
'''


def write_definition(directory: Path, name: str, flows: tuple[str, ...] = ()) -> Path:
    """Write the definition of a flow. flows: names of those that its role may use; without any it
    has a workspace and the network.
    """
    policy: dict[str, object] = (
        {"tools": [f"flow:{flow}" for flow in flows]}
        if flows
        else {"workspace": "write", "network": True, "tools": [*TOOLS]}
    )
    path = directory / f"{name}.py"
    path.write_text(TEMPLATE.format(name=name, policy=policy), "utf-8")
    return path
