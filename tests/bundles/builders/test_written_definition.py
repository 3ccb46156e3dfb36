"""Definitions as JSON data: read from bundles, and built again without being executed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from uncaged_bundles.authoring import END, START, Role, View, Workflow
from uncaged_bundles.builders.workflow import build_workflow
from uncaged_bundles.builders.written_definition import definition_source, read_definition
from uncaged_bundles.errors import BundleError
from uncaged_bundles.validation.validate import read_bundle
from uncaged_templates import reason, solve_issue

WRITER = Role(
    name="writer",
    description="Writes.",
    system_prompt="Write.",
    extract_prompt="Say.",
    schema={"properties": {"status": {"enum": ["done"]}}},
)


def recover(ctx: View, failure: View) -> str:
    return END if failure.times > 1 else str(ctx.steps[-1].role)


WORKFLOWS = [
    reason.workflow,
    solve_issue.workflow,
    Workflow(
        name="table",
        description="",
        roles=[WRITER],
        moderator={START: "writer", "writer": {"done": END}},
        recover=recover,
        on_failure="fix",
    ),
    Workflow(
        name="bare",
        description="x",
        roles=[WRITER],
        moderator={START: "writer", "writer": END},
        continues=False,
    ),
]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: str(one.name))
def test_the_definition_that_is_read_builds_the_same_bundle(workflow: Workflow) -> None:
    """Byte for byte, also after it was a JSON file."""
    source = build_workflow(workflow)
    document = json.loads(json.dumps(read_definition(read_bundle(source))))
    assert definition_source(document, workflow.name) == source
    assert document.get("onFailure", "") == workflow.on_failure


def test_no_definition_is_read_from_another_bundle() -> None:
    """A bundle that drives something else has none."""
    source = build_workflow(WORKFLOWS[2]).replace(b"drive_roles", b"drive_others")
    assert read_definition(read_bundle(source)) is None


def document(**more: object) -> dict[str, Any]:
    found = read_definition(read_bundle(build_workflow(WORKFLOWS[2])))
    assert found is not None
    return {**found, **more}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"name": "other"}, "not of 'table'"),
        ({"trigger": 1}, "trigger"),
        ({"policy": {}}, "must allow its roles"),
        ({"moderator": {"__start__": "unknown"}}, "is no role"),
        ({"moderator": "choose"}, "no plain function 'choose'"),
        ({"graph": {}}, "leave the graph out"),
        ({"roles": {"writer": {"description": ""}}}, "systemPrompt"),
        ({"code": "def recover(ctx):\n    return END"}, r"exactly \(ctx, failure\)"),
        ({"code": "def recover(ctx, failure, /, *more):\n    return END"}, "exactly"),
        ({"code": "def recover(ctx, failure):\n    return END\nimport re"}, "come first"),
        ({"code": "import os\ndef recover(ctx, failure):\n    return END"}, "os"),
        ({"code": "freeze = 1\ndef recover(ctx, failure):\n    return END"}, "binds freeze"),
        ({"code": "def recover():\n    return END"}, "exactly"),
        ({"code": "def recover(ctx, failure):\n    x = yield\n    return END"}, "a generator"),
        ({"code": "def recover(ctx, failure):\n    return END\nreturn"}, "outside function"),
        (
            {"code": "for run in (1,):\n    pass\ndef recover(ctx, failure):\n    return END"},
            "binds run",
        ),
        ({"code": "run = 1\ndef recover(ctx, failure):\n    return END"}, "binds run"),
        ({"code": "def recover(ctx, failure:"}, "not valid Python"),
    ],
)
def test_an_invalid_definition_is_refused_with_the_reason(
    more: dict[str, object], reason: str
) -> None:
    """Each part that a bundle cannot have is named."""
    with pytest.raises(BundleError, match=reason):
        definition_source(document(**more), "table")


def test_the_parameters_of_a_function_may_have_types_and_names_inside_it_are_its_own() -> None:
    """A comma in an annotation separates no parameters; an inner generator makes none of it. What
    Python warns of is no error.
    """
    code = (
        "def recover(ctx: dict[str, int], failure: dict[str, tuple[int, ...]]) -> str:\n"
        "    def inner():\n        yield END\n"
        "    return [run for run in inner()][0]\n"
        "NAMES = [run for run in 'ab' if run is 'a']\nDIGITS = '\\d'\n"
    )
    assert b"dict[str, tuple[int, ...]]" in definition_source(document(code=code), "table")


def test_nothing_of_a_definition_is_executed_while_it_is_built() -> None:
    """Code that fails as soon as it is loaded is built: it runs in a sandbox alone."""
    code = str(document()["code"])
    assert b"1 / 0" in definition_source(document(code=f"{code}\nX = 1 / 0\n"), "table")
