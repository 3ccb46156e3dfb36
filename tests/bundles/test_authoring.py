"""The names that a definition is written with."""

from __future__ import annotations

import subprocess
import sys

import pytest
from uncaged_bundles.authoring import END, START, Role, Workflow
from uncaged_bundles.errors import BundleError


def a_role(name: str) -> Role:
    return Role(name=name, description="d", system_prompt="s", extract_prompt="e", schema={})


def test_a_workflow_asks_for_its_roles_and_nothing_else() -> None:
    """The defaults are minimal: roles without files, no params, threads of other versions
    accepted.
    """
    workflow = Workflow(
        name="w", description="d", roles=[a_role("a")], moderator={START: "a", "a": END}
    )
    assert workflow.policy == {"role": {}}
    assert workflow.parameters == {"type": "object", "additionalProperties": False}
    assert workflow.continues


def test_a_workflow_has_roles() -> None:
    """A workflow without roles would have no role to ask."""
    with pytest.raises(BundleError, match="workflow 'w' has no roles"):
        Workflow(name="w", description="d", roles=[], moderator={START: END})


def test_role_names_are_unique() -> None:
    """Two roles of one name could not be distinguished in a journal."""
    with pytest.raises(BundleError, match="two roles named 'b'; rename one"):
        Workflow(
            name="w",
            description="d",
            roles=[a_role("a"), a_role("b"), a_role("b")],
            moderator={START: END},
        )


@pytest.mark.slow
def test_authoring_and_building_load_no_heavy_library() -> None:
    """pydantic is loaded by a definition that uses it, not by the words to write one; order of
    import does not matter.
    """
    for first in (
        "uncaged_bundles.authoring",
        "uncaged_bundles.builders",
        "uncaged_bundles.builders.definition",
        "uncaged_bundles.carried.workflow",
    ):
        code = f"import {first}, uncaged_bundles.builders.schema, sys; "
        code += "print(sorted({'pydantic', 'jsonschema', 'rich'} & set(sys.modules)))"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "[]\n"
