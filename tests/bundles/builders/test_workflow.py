"""A workflow's definition becomes one file that behaves like the definition."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from uncaged_bundles import shapes
from uncaged_bundles.authoring import END, START, Role, View, Workflow
from uncaged_bundles.builders import build_workflow
from uncaged_bundles.builders.workflow import write_workflow
from uncaged_bundles.carried.workflow import follow_table
from uncaged_bundles.errors import BundleError
from uncaged_bundles.limits import KNOWN_EFFECTS, Limits
from uncaged_bundles.validation.validate import read_bundle

NAMES = ("planner", "coder", "reviewer")
STATUSES = ("done", "again", "stuck")
SCHEMA = {
    "type": "object",
    "properties": {"status": {"enum": list(STATUSES)}},
    "required": ["status"],
}
ROLES = [
    Role(
        name=name,
        description=f"The {name}.",
        system_prompt="Do.\nEnd.",
        extract_prompt="Take.",
        schema=SCHEMA,
    )
    for name in NAMES
]
OPTIONS = {"threadId": "01HX5WBE00", "startedAt": 1, "seed": 1}
PROMPTS = ("", "short", "a long prompt")

LIMIT = 2
ORDER = {"planner": "coder", "coder": "reviewer", "reviewer": "planner"}


class Tally:
    """The number of answers by role."""

    def __init__(self, steps: list[View]) -> None:
        self.count = Counter(step.role for step in steps)

    def over(self, limit: int) -> bool:
        return any(count > limit for count in self.count.values())


def by_status(ctx: View) -> str:
    if not ctx.steps:
        return "planner"
    last = ctx.steps[-1]
    match last.meta.status:
        case "again":
            return str(last.role)
        case "stuck":
            return END
        case _:
            pass
    return ORDER[last.role]


def by_count(ctx: View) -> str:
    return END if Tally(ctx.steps).over(LIMIT) else NAMES[len(ctx.steps) % len(NAMES)]


def by_prompt(ctx: View) -> str:
    words = re.findall(r"\w+", ctx.start.prompt)
    return (
        END
        if len(ctx.steps) > len(words)
        else next(itertools.islice(itertools.cycle(NAMES), len(words), None))
    )


def by_everything(ctx: View) -> str:
    total = sum(
        step.timestamp + len(step.content) + sum(map(len, step.meta.values())) for step in ctx.steps
    )
    return END if total % 7 == 6 else sorted(NAMES)[(total + ctx.start.params.get("shift", 0)) % 3]


pick = lambda ctx: NAMES[-1] if len(ctx["steps"]) < LIMIT else END  # noqa: E731 - a lambda with a name is one of the ways to write one

TABLE = {
    START: "planner",
    "planner": {"done": "coder", "again": "planner", "stuck": END},
    "coder": {"done": "reviewer", "again": "coder", "stuck": "planner"},
    "reviewer": {"done": END, "again": "coder", "stuck": END},
}
MODERATORS: dict[str, Any] = {
    "by_status": by_status,
    "by_count": by_count,
    "by_prompt": by_prompt,
    "by_everything": by_everything,
    "pick": pick,
    "table": TABLE,
}


def message_of(ctx: View) -> dict[str, object]:
    return {
        "success": bool(ctx.steps),
        "message": " ".join(step.role for step in ctx.steps),
        "data": {"limit": LIMIT},
    }


def define(**changes: Any) -> Workflow:
    fields: dict[str, Any] = {
        "name": "example",
        "description": "An example.",
        "roles": ROLES,
        "moderator": by_status,
    }
    return Workflow(**fields | changes)


def load(source: bytes) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(source, "bundle.py", "exec"), namespace)  # noqa: S102 - the bundle is the subject of the test
    return namespace


BUILT = {
    name: load(build_workflow(define(moderator=moderator, result=message_of)))
    for name, moderator in MODERATORS.items()
}


@pytest.mark.slow
@given(
    st.sampled_from(sorted(MODERATORS)),
    st.lists(st.tuples(st.sampled_from(STATUSES), st.text(max_size=5)), max_size=12),
    st.sampled_from(PROMPTS),
    st.integers(0, 3),
)
def test_a_bundle_behaves_like_its_definition(
    name: str, answers: list[tuple[str, str]], prompt: str, shift: int
) -> None:
    """Whatever the answers, the bundle asks the roles that the moderator picks, and returns what
    the result function makes of them.
    """
    moderator = MODERATORS[name]
    choose = follow_table(moderator) if isinstance(moderator, Mapping) else moderator
    steps: list[dict[str, Any]] = []
    given_in = {"prompt": prompt, "params": {"shift": shift}, "steps": []}

    def ctx() -> View:
        return View(
            {
                "threadId": OPTIONS["threadId"],
                "start": {"prompt": prompt, "params": {"shift": shift}},
                "steps": steps,
            }
        )

    run = BUILT[name]["run"](given_in, OPTIONS)
    result: Any = None
    try:
        effect = next(run)
        for number, (status, content) in enumerate(answers):
            role = choose(ctx())
            assert effect == {"role": {"name": role}}
            steps.append(
                {"role": role, "content": content, "meta": {"status": status}, "timestamp": number}
            )
            effect = run.send({"seq": number + 1, **steps[-1], "by": "somebody"})
        assert effect == {"role": {"name": choose(ctx())}}
    except StopIteration as stop:
        result = stop.value
        assert choose(ctx()) == END
        assert result == message_of(ctx())
    assert result is not None or len(steps) == len(answers)


def test_a_bundle_is_valid_and_says_what_was_defined() -> None:
    """The descriptor is the definition, as a literal."""
    workflow = define(
        policy={"role": {"workspace": "read"}},
        parameters={"type": "object"},
        continues=False,
        moderator=TABLE,
    )
    descriptor = read_bundle(build_workflow(workflow), check_schemas=True).descriptor
    assert (descriptor.name, descriptor.description, descriptor.kind) == (
        "example",
        "An example.",
        "workflow",
    )
    assert tuple(descriptor.roles) == NAMES
    assert descriptor.roles["coder"].system_prompt == "Do.\nEnd."
    assert descriptor.roles["coder"].schema == SCHEMA
    assert descriptor.policy.limits == {"role": {"workspace": "read"}}
    assert descriptor.parameters == {"type": "object"}
    assert not descriptor.continues
    assert descriptor.raw["graph"] == TABLE
    assert descriptor.graph is not None
    assert descriptor.graph["coder"] == {
        "done": ("reviewer",),
        "again": ("coder",),
        "stuck": ("planner",),
    }


def test_a_function_has_no_graph() -> None:
    """Only a table can be drawn exactly."""
    assert read_bundle(build_workflow(define())).descriptor.graph is None


def test_a_bundle_reads_like_a_file() -> None:
    """A head that says what it is, imports, the descriptor, the driver, the author's code, and
    `run` last; nothing of this machine.
    """
    text = build_workflow(define(moderator=by_prompt)).decode()
    assert text.startswith(
        "# The workflow 'example', as uncaged-workflow built it from its definition: change that, and build again.\n\n"
    )
    parts = [
        "from __future__",
        "import itertools\nimport re\n",
        "\ndescriptor = {",
        "\n# Carried from uncaged-workflow",
        "\ndef drive_roles(",
    ]
    parts += [
        "\n# Carried from the definition.\n",
        "\nNAMES = (",
        "\ndef by_prompt(ctx: View) -> str:\n",
        "\ndef run(input, options):\n",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "\n\n\n\n" not in text
    assert text.endswith("\n")
    assert str(Path(__file__).parent) not in text


def test_what_is_not_needed_is_not_carried() -> None:
    """A function moderator brings no table code, and a table brings nothing of the author's."""
    assert b"follow_table" not in build_workflow(define())
    assert b"Carried from the definition" not in build_workflow(define(moderator=TABLE))


def test_a_bundle_is_formatted() -> None:
    """No line is too long or ends in a space, two empty lines surround every function and class,
    and one line feed ends the file.
    """
    long = [
        Role(
            name=role.name,
            description="word " * 40,
            system_prompt="A line.\n" * 3,
            extract_prompt="x",
            schema=SCHEMA,
        )
        for role in ROLES
    ]
    for workflow in (
        define(moderator=TABLE),
        define(moderator=by_count, result=message_of, roles=long),
    ):
        text = build_workflow(workflow).decode()
        lines = text.split("\n")
        assert [line for line in lines if len(line) > 120 or line != line.rstrip()] == []
        assert re.search(r"[^\n]\n$", text)
        tree = ast.parse(text)
        for before, node in itertools.pairwise(tree.body):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert before.end_lineno is not None
                between = lines[before.end_lineno : node.lineno - 1]
                assert between[:2] == between[-2:] == ["", ""]
                assert len(between) == 2 or between[2].startswith("# Carried from")


def test_pydantic_models_are_frozen() -> None:
    """A role's schema may be a model class; the bundle holds its JSON Schema, and tables are
    checked against it.
    """

    class Answer(BaseModel):
        status: Literal["yes", "no"]

    role = Role(name="judge", description="d", system_prompt="s", extract_prompt="e", schema=Answer)
    source = build_workflow(
        define(roles=[role], moderator={START: "judge", "judge": {"yes": END, "no": "judge"}})
    )
    schema = read_bundle(source).descriptor.roles["judge"].schema
    assert schema == {
        "type": "object",
        "properties": {"status": {"type": "string", "enum": ["yes", "no"]}},
        "required": ["status"],
    }


def test_all_problems_of_a_table_are_one_error() -> None:
    """Problems of a table are reported together, with the workflow's name."""
    table = {
        START: "planner",
        "planner": {"done": "tester", "again": END, "late": END},
        "coder": TABLE["coder"],
        "reviewer": TABLE["reviewer"],
    }
    with pytest.raises(BundleError) as caught:
        build_workflow(define(moderator=table))
    lines = str(caught.value).split("\n")
    assert lines[0] == "the table of workflow 'example' has 5 problems:"
    assert len(lines) == 6
    assert all(line.startswith("- ") for line in lines[1:])


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": "Not Kebab"}, "the workflow's name: 'Not Kebab' is not a flow name"),
    ({"name": "a\nimport os"}, "the workflow's name"),
    ({"policy": {}}, "the policy of workflow 'example' must allow its roles"),
    (
        {"policy": {"role": {}, "rool": {}}},
        "what 'example' builds is not a valid bundle: .*'rool' is not an effect",
    ),
    ({"policy": {"role": {"workspace": "all"}}}, "policy.role.workspace"),
    ({"parameters": {"type": "objekt"}}, "'objekt' is not valid"),
    ({"parameters": {"default": {1, 2}}}, r"parameters\.default is \{1, 2\}"),
    ({"moderator": None}, "the moderator is None; write a plain function"),
    ({"description": 3}, "descriptor.description: must be text"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_a_definition_that_makes_no_bundle_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    """The builder makes the checks of `add`: nothing invalid leaves it."""
    with pytest.raises(BundleError, match=message):
        build_workflow(define(**changes))


def test_effects_of_other_distributions_can_be_allowed() -> None:
    """Which effects a policy may name is for the engine to say."""
    workflow = define(policy={"role": {}, "shout": {"maxCharacters": 9}})

    @dataclass(frozen=True, slots=True, kw_only=True)
    class ShoutLimits(Limits):
        max_characters: Annotated[int | None, shapes.whole, "maxCharacters"] = None

    assert build_workflow(workflow, {**KNOWN_EFFECTS, "shout": ShoutLimits}) == write_workflow(
        workflow
    )


DEFINITION = """\
from uncaged_bundles.authoring import END, Role, View, Workflow
from pydantic import BaseModel
from rules import KINDS, pick

class Answer(BaseModel):
    status: str
    tags: set[str] = set()

role = Role(name="a", description="d", system_prompt="s", extract_prompt="e", schema=Answer)

def moderator(ctx: View) -> str:
    return pick(KINDS) if not ctx.steps else END

workflow = Workflow(name="same", description="d", roles=[role], moderator=moderator)
"""
RULES = """\
import json, re
from collections import Counter, OrderedDict, defaultdict
from math import ceil, floor

KINDS = {"a", "b", "c", "d"}

def pick(kinds):
    helper(kinds, other)
    return sorted(kinds)[floor(ceil(0.5)) - 1]

def helper(*_):
    return json, re, Counter, OrderedDict, defaultdict

def other():
    return KINDS
"""
BUILD = """
import sys
from flow import workflow
from uncaged_bundles.builders import build_workflow
sys.stdout.buffer.write(build_workflow(workflow))
"""


@pytest.mark.slow
def test_the_same_definition_gives_the_same_bytes(tmp_path: Path) -> None:
    """Wherever the files lie, whatever the current directory, under any hash seed."""
    found = set()
    for number, seed in enumerate(("0", "1", "2", "random")):
        home = tmp_path / f"place{number}" / ("deep/" * number)
        home.mkdir(parents=True)
        (home / "flow.py").write_text(DEFINITION)
        (home / "rules.py").write_text(RULES)
        environment = {
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(home),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        directory = home if number % 2 else tmp_path
        done = subprocess.run(
            [sys.executable, "-c", BUILD],
            env=environment,
            cwd=directory,
            capture_output=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
    assert b"from collections import Counter, OrderedDict, defaultdict\n" in found.pop()
