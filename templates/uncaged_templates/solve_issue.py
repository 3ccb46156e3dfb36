"""``solve-issue`` takes an issue to a reviewed commit: planner, coder until the plan is done, reviewer, committer."""

from __future__ import annotations

from collections.abc import Iterator

from uncaged_bundles.authoring import END, START, Graph, View, Workflow
from uncaged_roles.coder import role as coder
from uncaged_roles.committer import role as committer
from uncaged_roles.planner import role as planner
from uncaged_roles.reviewer import role as reviewer

# Where an answer leads, by role and status; `phase-done` leads to the reviewer as soon as no phase is left.
NEXT = {
    "planner": {"planned": "coder", "aborted": END},
    "coder": {"phase-done": "coder", "all-done": "reviewer", "stuck": END},
    "reviewer": {"approved": "committer", "rejected": "coder"},
    "committer": {"committed": END, "recoverable": "coder", "unrecoverable": END},
}

GRAPH: Graph = {START: "planner", **NEXT, "coder": {**NEXT["coder"], "phase-done": ["coder", "reviewer"]}}

# Where an answer that ends the run without success says why.
REASON = {"aborted": "reason", "stuck": "summary", "unrecoverable": "error"}


def moderator(ctx: View) -> str:
    if not ctx.steps:
        return "planner"
    last = ctx.steps[-1]
    if last.meta.status == "phase-done" and not open_phases(ctx):
        return "reviewer"
    return NEXT[last.role][last.meta.status]


def open_phases(ctx: View) -> list[str]:
    """Return the names of the planned phases that no coder's answer completed yet."""
    planned = [phase.name for step in ctx.steps if step.role == "planner" for phase in step.meta.get("phases", [])]
    completed = {name for step in ctx.steps if step.role == "coder" for name in step.meta.get("completedPhases", [])}
    return [name for name in planned if name not in completed]


def result(ctx: View) -> dict[str, object]:
    last = ctx.steps[-1]
    status = last.meta.status
    branch, commit = last.meta.get("branch"), last.meta.get("commitSha")
    if status == "committed":
        message = f"committed {commit[:12]} on branch {branch}"
    else:
        message = f"{last.role} {status}: {last.meta[REASON[status]]}"
    data = {"role": last.role, "status": status, "branch": branch, "commitSha": commit}
    return {"success": status == "committed", "message": message, "data": data}


workflow = Workflow(
    name="solve-issue",
    description="Plans, codes, reviews and commits a fix for an issue in a git repository.",
    roles=(planner, coder, reviewer, committer),
    moderator=moderator,
    graph=GRAPH,
    result=result,
    policy={"role": {"workspace": "write"}},
)


def flows() -> Iterator[tuple[str, Workflow, bool]]:
    """Yield the workflow under its name; a sentence runs it only with consent."""
    yield workflow.name, workflow, True
