"""The shipped roles: their prompts, and the answers that their schemas accept."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from uncaged_bundles.authoring import Role
from uncaged_bundles.builders.schema import statuses
from uncaged_bundles.builders.text.literal import write_literal

NAMES = ("planner", "coder", "reviewer", "committer")
PHASE = {"name": "fix", "description": "Fix it.", "acceptance": "The suite passes."}
SHA = "02996122c1f2979dafe14526c7d70357b5df8c77"

FITTING: list[tuple[str, dict[str, Any]]] = [
    ("planner", {"status": "planned", "phases": [PHASE]}),
    (
        "planner",
        {
            "status": "planned",
            "phases": [PHASE, {**PHASE, "name": "more"}],
            "reason": "",
            "note": "further keys are no harm",
        },
    ),
    ("planner", {"status": "aborted", "reason": "There is no such module."}),
    ("planner", {"status": "aborted", "reason": "No.", "phases": []}),
    (
        "coder",
        {
            "status": "phase-done",
            "completedPhases": ["fix"],
            "filesChanged": ["a.py"],
            "summary": "Fixed.",
        },
    ),
    (
        "coder",
        {
            "status": "all-done",
            "completedPhases": [],
            "filesChanged": [],
            "summary": "Nothing was left.",
        },
    ),
    ("coder", {"status": "stuck", "summary": "The compiler is missing."}),
    ("reviewer", {"status": "approved"}),
    ("reviewer", {"status": "approved", "issues": []}),
    ("reviewer", {"status": "rejected", "issues": ["a.py:3: off by one"]}),
    ("committer", {"status": "committed", "branch": "uncaged/solve-issue/1", "commitSha": SHA}),
    ("committer", {"status": "committed", "branch": "main", "commitSha": "a" * 64, "error": ""}),
    ("committer", {"status": "recoverable", "error": "a hook found a tab"}),
    ("committer", {"status": "unrecoverable", "error": "no space left on device"}),
]
NOT_FITTING: list[tuple[str, dict[str, Any]]] = [
    ("planner", {}),
    ("planner", {"status": "done"}),
    ("planner", {"status": "planned"}),
    ("planner", {"status": "planned", "phases": []}),
    ("planner", {"status": "planned", "phases": ["fix"]}),
    ("planner", {"status": "planned", "phases": [{**PHASE, "acceptance": ""}]}),
    ("planner", {"status": "planned", "phases": [{"name": "fix", "description": "Fix it."}]}),
    ("planner", {"status": "aborted"}),
    ("planner", {"status": "aborted", "reason": ""}),
    (
        "coder",
        {
            "status": "phase-done",
            "completedPhases": [],
            "filesChanged": ["a.py"],
            "summary": "Fixed.",
        },
    ),
    ("coder", {"status": "phase-done", "filesChanged": ["a.py"], "summary": "Fixed."}),
    ("coder", {"status": "all-done", "completedPhases": ["fix"], "filesChanged": ["a.py"]}),
    ("coder", {"status": "all-done", "completedPhases": ["fix"], "summary": "Fixed."}),
    (
        "coder",
        {"status": "all-done", "completedPhases": "fix", "filesChanged": [], "summary": "Fixed."},
    ),
    ("coder", {"status": "stuck", "summary": ""}),
    ("coder", {"status": "stuck"}),
    ("reviewer", {"status": "rejected"}),
    ("reviewer", {"status": "rejected", "issues": []}),
    ("reviewer", {"status": "approved", "issues": ["a.py:3: off by one"]}),
    ("reviewer", {"issues": []}),
    ("committer", {"status": "committed", "branch": "main"}),
    ("committer", {"status": "committed", "branch": "", "commitSha": SHA}),
    ("committer", {"status": "committed", "branch": "main", "commitSha": "HEAD"}),
    ("committer", {"status": "recoverable"}),
    ("committer", {"status": "unrecoverable", "error": ""}),
]


def role_of(name: str) -> Role:
    role = import_module(f"uncaged_roles.{name}").role
    assert isinstance(role, Role)
    return role


def schema_of(name: str) -> dict[str, Any]:
    schema = role_of(name).schema
    assert isinstance(schema, dict)
    return schema


@pytest.mark.parametrize("name", NAMES)
def test_a_role_is_plain_data(name: str) -> None:
    """A role's module exposes `role` under its own name; the schema is valid JSON Schema, written
    out.
    """
    role = role_of(name)
    assert role.name == name
    Draft202012Validator.check_schema(schema_of(name))
    assert write_literal(role.schema)


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_explains_every_status_and_every_field(name: str) -> None:
    """An agent reads in plain words when to answer what; the extractor's prompt names the same
    fields.
    """
    role, schema = role_of(name), schema_of(name)
    words = statuses(schema)
    assert words
    for word in words:
        assert f"\n- `{word}`" in role.system_prompt, word
    extracted = set(re.findall(r"[A-Za-z]+", role.extract_prompt))
    assert set(schema["properties"]) <= extracted


@pytest.mark.parametrize("name", NAMES)
def test_prompts_are_shaped_for_reading(name: str) -> None:
    """No line is long, none ends in a space, and each prompt ends with one line feed."""
    for prompt in (role_of(name).system_prompt, role_of(name).extract_prompt):
        assert re.search(r"\S\n$", prompt)
        assert [
            line for line in prompt.split("\n") if len(line) > 100 or line != line.rstrip()
        ] == []


def test_every_role_can_be_found_by_its_entry_point() -> None:
    """Other distributions find the shipped roles as they would find their own."""
    points = entry_points(group="uncaged_workflow.roles")
    assert [points[name].load() for name in NAMES] == [role_of(name) for name in NAMES]


@pytest.mark.parametrize(("name", "answer"), FITTING)
def test_a_right_answer_fits(name: str, answer: dict[str, Any]) -> None:
    """The required fields of each status are enough."""
    assert list(Draft202012Validator(schema_of(name)).iter_errors(answer)) == []


@pytest.mark.parametrize(("name", "answer"), NOT_FITTING)
def test_a_wrong_answer_does_not_fit(name: str, answer: dict[str, Any]) -> None:
    """A status without what belongs to it (a rejection without issues, a commit without its id) is
    no answer.
    """
    assert list(Draft202012Validator(schema_of(name)).iter_errors(answer))


def test_what_is_missing_is_said_by_name() -> None:
    """The error that an agent gets for its answer names the missing field."""
    errors = [
        error.message
        for error in Draft202012Validator(schema_of("reviewer")).iter_errors({"status": "rejected"})
    ]
    assert errors == ["'issues' is a required property"]


def test_the_committer_never_pushes_and_keeps_to_its_branch() -> None:
    """The prompt has the rules that protect a person's repository."""
    prompt = " ".join(role_of("committer").system_prompt.split())
    for rule in (
        "Never push",
        "never make, switch, rename or delete branches",
        "never rewrite or amend commits",
        "never switch off hooks",
    ):
        assert rule in prompt
