"""solve-issue: planner, coder until the plan is done, reviewer, committer."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from uncaged_bundles.authoring import END, View
from uncaged_bundles.builders import build_workflow
from uncaged_bundles.validation.validate import read_bundle
from uncaged_templates.solve_issue import moderator, open_phases, result, workflow

SHA = "02996122c1f2979dafe14526c7d70357b5df8c77"
SOURCE = build_workflow(workflow)
ROLES = read_bundle(SOURCE).descriptor.roles

Meta = dict[str, Any]


def planned(*names: str) -> Meta:
    return {
        "status": "planned",
        "phases": [{"name": name, "description": "d", "acceptance": "a"} for name in names],
    }


def coded(status: str, *completed: str) -> Meta:
    return {
        "status": status,
        "completedPhases": list(completed),
        "filesChanged": [],
        "summary": "said so",
    }


ABORTED: Meta = {"status": "aborted", "reason": "no such module"}
APPROVED: Meta = {"status": "approved", "issues": []}
REJECTED: Meta = {"status": "rejected", "issues": ["a.py:1: wrong"]}
COMMITTED: Meta = {"status": "committed", "branch": "uncaged/solve-issue/x", "commitSha": SHA}
RECOVERABLE: Meta = {"status": "recoverable", "error": "hook"}
UNRECOVERABLE: Meta = {"status": "unrecoverable", "error": "disk full"}


def run(*answers: Meta) -> tuple[list[str], Any]:
    """Drive the bundle through *answers*; return the roles that it asked, the one still open
    included, and its result.
    """
    namespace: dict[str, Any] = {}
    exec(compile(SOURCE, "bundle.py", "exec"), namespace)  # noqa: S102 - the bundle is the subject of the test
    generator = namespace["run"](
        {"prompt": "fix it", "params": {}, "steps": []},
        {"threadId": "t", "startedAt": 1, "seed": 1},
    )
    asked: list[str] = []
    try:
        effect = next(generator)
        for seq, meta in enumerate(answers, 1):
            role = effect["role"]["name"]
            assert list(Draft202012Validator(ROLES[role].schema).iter_errors(meta)) == []
            asked.append(role)
            effect = generator.send(
                {"seq": seq, "role": role, "content": "", "meta": meta, "by": "x", "timestamp": seq}
            )
        asked.append(effect["role"]["name"])
    except StopIteration as stop:
        return asked, stop.value
    return asked, None


PATHS: list[tuple[tuple[Meta, ...], str]] = [
    ((), "planner"),
    ((planned("a", "b"),), "planner coder"),
    ((planned("a", "b"), coded("phase-done", "a")), "planner coder coder"),
    (
        (planned("a", "b"), coded("phase-done", "a"), coded("phase-done", "b")),
        "planner coder coder reviewer",
    ),
    (
        (planned("a", "b"), coded("phase-done", "b"), coded("phase-done", "a")),
        "planner coder coder reviewer",
    ),
    (
        (planned("a", "b"), coded("phase-done", "a"), coded("phase-done", "a")),
        "planner coder coder coder",
    ),
    ((planned("a", "b"), coded("phase-done", "A")), "planner coder coder"),
    ((planned("a", "b"), coded("phase-done", "a", "b")), "planner coder reviewer"),
    ((planned("a", "b"), coded("all-done")), "planner coder reviewer"),
    ((planned("a"), coded("all-done", "a"), REJECTED), "planner coder reviewer coder"),
    (
        (planned("a"), coded("all-done", "a"), REJECTED, coded("phase-done", "a")),
        "planner coder reviewer coder reviewer",
    ),
    ((planned("a"), coded("all-done", "a"), APPROVED), "planner coder reviewer committer"),
    (
        (planned("a"), coded("all-done", "a"), APPROVED, RECOVERABLE),
        "planner coder reviewer committer coder",
    ),
    (
        (planned("a"), coded("all-done", "a"), APPROVED, RECOVERABLE, coded("all-done"), APPROVED),
        "planner coder reviewer committer coder reviewer committer",
    ),
]


@pytest.mark.parametrize(("answers", "path"), PATHS)
def test_the_next_role_follows_from_the_answers(answers: tuple[Meta, ...], path: str) -> None:
    """Phases accumulate over the coder's answers; a rejection and a recoverable commit go back to
    the coder.
    """
    asked, outcome = run(*answers)
    assert " ".join(asked) == path
    assert outcome is None


def test_a_commit_is_the_success() -> None:
    """The result has branch and commit."""
    asked, outcome = run(planned("a"), coded("all-done", "a"), APPROVED, COMMITTED)
    assert asked == ["planner", "coder", "reviewer", "committer"]
    assert outcome == {
        "success": True,
        "message": f"committed {SHA[:12]} on branch uncaged/solve-issue/x",
        "data": {
            "role": "committer",
            "status": "committed",
            "branch": "uncaged/solve-issue/x",
            "commitSha": SHA,
        },
    }


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ((ABORTED,), "planner aborted: no such module"),
        ((planned("a"), coded("stuck")), "coder stuck: said so"),
        (
            (planned("a"), coded("all-done"), APPROVED, UNRECOVERABLE),
            "committer unrecoverable: disk full",
        ),
    ],
)
def test_whatever_cannot_go_on_ends_with_its_reason(
    answers: tuple[Meta, ...], message: str
) -> None:
    """aborted, stuck and unrecoverable end the run without success, and say why."""
    _, outcome = run(*answers)
    assert (outcome["success"], outcome["message"]) == (False, message)
    assert (outcome["data"]["branch"], outcome["data"]["commitSha"]) == (None, None)


PLANS = [planned("a", "b"), ABORTED]
EDITS = [coded("phase-done", "a"), coded("phase-done", "b"), coded("all-done"), coded("stuck")]
VERDICTS = [APPROVED, REJECTED, COMMITTED, RECOVERABLE, UNRECOVERABLE]


@pytest.mark.slow
@given(st.lists(st.sampled_from([*PLANS, *EDITS, *VERDICTS]), max_size=12))
def test_the_bundle_and_the_module_agree(metas: list[Meta]) -> None:
    """For any answers, the built bundle calls the roles that the module's own moderator picks, and
    has the same result.
    """
    steps: list[Meta] = []
    answers: list[Meta] = []
    for meta in metas:
        role = moderator(View({"steps": steps}))
        if role == END:
            break
        if not any(Draft202012Validator(ROLES[role].schema).iter_errors(meta)):
            answers.append(meta)
            steps.append({"role": role, "content": "", "meta": meta, "timestamp": len(answers)})
    ctx = View({"steps": steps})
    asked, outcome = run(*answers)
    if moderator(ctx) == END:
        assert outcome == result(ctx)
    else:
        assert asked == [*(step["role"] for step in steps), moderator(ctx)]


def test_the_graph_holds_every_edge_that_the_moderator_takes() -> None:
    """The declared edges are those of the table, and the one by which the last phase leads to the
    reviewer.
    """
    graph = read_bundle(SOURCE).descriptor.graph
    assert graph is not None
    for answers, path in PATHS:
        roles = path.split()
        sources = [
            ("__start__", ""),
            *((role, meta["status"]) for role, meta in zip(roles, answers, strict=False)),
        ]
        for (source, status), target in zip(sources, roles, strict=True):
            assert target in graph[source][status]


def test_open_phases_are_those_that_no_coder_completed() -> None:
    """Open phases are in the order of the plan; names that the plan does not have are ignored."""
    steps = [
        {"role": "planner", "meta": planned("a", "b", "c")},
        {"role": "coder", "meta": coded("phase-done", "b", "z")},
    ]
    assert open_phases(View({"steps": steps})) == ["a", "c"]


def test_it_asks_for_a_workspace_and_nothing_else() -> None:
    """Roles that write files in the thread's own worktree; no params; goes on from another
    version.
    """
    descriptor = read_bundle(SOURCE).descriptor
    assert descriptor.name == "solve-issue"
    assert descriptor.raw["policy"] == {"role": {"workspace": "write"}}
    assert list(descriptor.roles) == ["planner", "coder", "reviewer", "committer"]
    assert descriptor.continues


def test_it_is_found_by_its_entry_point() -> None:
    """The store is filled through the same door that other distributions use."""
    flows = entry_points(group="uncaged_workflow.templates")["solve-issue"].load()
    assert list(flows()) == [("solve-issue", workflow, True)]
