"""A definition file is loaded in a process of its own and comes back as a bundle."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from uncaged_bundles.builders.definition import build_definition
from uncaged_bundles.errors import BundleError, NotFoundError
from uncaged_bundles.limits import KNOWN_EFFECTS, Limits
from uncaged_bundles.validation.validate import read_bundle

DEFINITION = """\
from uncaged_bundles.authoring import END, Role, View, Workflow

role = Role(name="a", description="d", system_prompt="s", extract_prompt="e", schema={"type": "object"})

def moderator(ctx: View) -> str:
    return "a" if not ctx.steps else END

workflow = Workflow(name="flow", description="d", roles=[role], moderator=moderator)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "flow.py"
    file.write_text(DEFINITION)
    return file


def test_a_definition_is_built(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundle is the workflow that the file defines; nothing of the file stays loaded, nothing
    is left beside it.
    """
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    before = list(sys.path)
    (path.parent / "rules.py").write_text("LAST = 3\n")
    path.write_text(DEFINITION + "import rules\n")
    bundle = read_bundle(build_definition(path))
    assert bundle.descriptor.name == "flow"
    assert "flow" not in sys.modules
    assert sys.path == before
    assert sorted(file.name for file in path.parent.iterdir()) == ["flow.py", "rules.py"]


@pytest.mark.slow
def test_what_a_definition_prints_is_no_part_of_the_bundle(path: Path) -> None:
    """Output of the author's code goes nowhere near the answer."""
    expected = build_definition(path)
    path.write_text("import os, sys\nprint('hello')\nos.write(1, b'{}')\n" + DEFINITION)
    assert build_definition(path) == expected


def test_neighbours_are_importable(path: Path) -> None:
    """A file may import what lies beside it, whatever directory the person is in."""
    (path.parent / "rules.py").write_text("LAST = 3\n")
    path.write_text(
        DEFINITION.replace("not ctx.steps", "len(ctx.steps) < LAST") + "from rules import LAST\n"
    )
    assert b"\nLAST = 3\n" in build_definition(path)


def test_a_module_of_a_package_is_loaded_as_such(tmp_path: Path) -> None:
    """Relative imports work when the file belongs to a package."""
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package.parent / "__init__.py").touch()
    (package / "rules.py").write_text("LAST = 3\n")
    (package / "flow.py").write_text(
        "from .rules import LAST\n" + DEFINITION.replace("not ctx.steps", "len(ctx.steps) < LAST")
    )
    assert b"\nLAST = 3\n" in build_definition(package / "flow.py")


def test_a_dash_in_the_name_is_no_obstacle(path: Path) -> None:
    """A file need not be importable by name."""
    named = path.with_name("my-flow.py")
    path.rename(named)
    assert read_bundle(build_definition(named)).descriptor.name == "flow"


def test_the_one_named_workflow_is_built(path: Path) -> None:
    """Further workflows are allowed beside it."""
    path.write_text(
        DEFINITION + "import dataclasses\nother = dataclasses.replace(workflow, name='other')\n"
    )
    assert read_bundle(build_definition(path)).descriptor.name == "flow"


def test_a_single_workflow_may_have_any_name(path: Path) -> None:
    """A workflow under two names is still a single workflow."""
    path.write_text(DEFINITION.replace("workflow =", "mine = also ="))
    assert read_bundle(build_definition(path)).descriptor.name == "flow"


@pytest.mark.slow
def test_effects_of_other_distributions_can_be_allowed(path: Path) -> None:
    """The check of the policy knows the effects that the caller names."""
    path.write_text(
        DEFINITION.replace(
            "moderator=moderator", "moderator=moderator, policy={'role': {}, 'shout': {}}"
        )
    )
    with pytest.raises(BundleError, match=r"flow\.py.*'shout' is not an effect"):
        build_definition(path)
    assert b'"shout": {}' in build_definition(path, {**KNOWN_EFFECTS, "shout": Limits})


WRONG = {
    "no workflow": ("x = 1\n", r"flow\.py defines no workflow; write workflow = Workflow"),
    "two workflows": (
        DEFINITION.replace("workflow =", "one =")
        + "import dataclasses\ntwo = dataclasses.replace(one, name='two')\n",
        r"defines several workflows \(one, two\); name the one to build 'workflow'",
    ),
    "syntax": ("def moderator(:\n", r"flow\.py does not load \(exit 1\):\n(.|\n)*SyntaxError"),
    "exception": (
        "1 / 0\n",
        r"flow\.py does not load \(exit 1\):\n(.|\n)*line 1(.|\n)*ZeroDivisionError",
    ),
    "exit": ("import sys\nsys.exit(0)\n", r"flow\.py does not load \(exit 0\)"),
    "not carried": (
        DEFINITION.replace("not ctx.steps", "not ctx.steps and __file__"),
        r"flow\.py:6: '__file__' belongs to the file",
    ),
    "authoring": (DEFINITION.replace("roles=[role]", "roles=[]"), "workflow 'flow' has no roles"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_definition_is_told(path: Path, name: str) -> None:
    """A broken file is the author's affair: an error with its place, never a crash of ours."""
    text, message = WRONG[name]
    path.write_text(text)
    with pytest.raises(BundleError, match=message):
        build_definition(path)


def test_a_missing_file_is_not_found() -> None:
    """The path as the person wrote it."""
    with pytest.raises(NotFoundError, match=r"there is no file 'nowhere/flow\.py'"):
        build_definition(Path("nowhere/flow.py"))


def test_the_name_of_a_standard_module_is_refused(path: Path) -> None:
    """A file called `json.py` would be mistaken for the standard one by everything that is loaded
    later.
    """
    named = path.with_name("json.py")
    path.rename(named)
    with pytest.raises(
        BundleError, match=r"json\.py has the name of another module, 'json'; rename the file"
    ):
        build_definition(named)
