"""Starter files that ``init`` writes: a definition, its tests, and answers for a scripted agent."""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.errors import UsageError

DEFINITION = '''\
"""A flow of two roles: one drafts a text, the other sends it back until nothing is left to fix.

    uncaged-workflow add proofread proofread.py
    uncaged-workflow run proofread --agent scripted:answers.yaml --prompt "Invite the team to lunch"

Without `--agent scripted:answers.yaml`, the agent that you configured answers.
"""

from uncaged_bundles.authoring import END, START, Role, View, Workflow

writer = Role(
    name="writer",
    description="Drafts the text.",
    system_prompt="""\\
You write the text that the task asks for, and nothing around it.
If your last draft was sent back, fix what was named and leave the rest as it is.
If the task cannot be done, decline and say why.
""",
    extract_prompt="Take the text letter for letter, or the reason for declining.",
    schema={
        "type": "object",
        "properties": {
            "status": {"enum": ["drafted", "declined"]},
            "text": {"type": "string", "description": "The draft, or the reason."},
        },
        "required": ["status", "text"],
    },
)

reader = Role(
    name="reader",
    description="Reads the draft and names what must be fixed.",
    system_prompt="""\\
You read the last draft as its audience would. Send it back only for what is wrong, missing or hard to understand.
Taste is no reason.
""",
    extract_prompt="Take the verdict, and the faults as a list.",
    schema={
        "type": "object",
        "properties": {
            "status": {"enum": ["good", "again"]},
            "faults": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["status", "faults"],
    },
)


def result(ctx: View) -> dict[str, object]:
    """Return the result of a run: the last draft, and whether the reader accepted it."""
    drafts = [step for step in ctx.steps if step.role == "writer"]
    return {
        "success": ctx.steps[-1].meta.status == "good",
        "message": drafts[-1].meta.text,
        "data": {"drafts": len(drafts)},
    }


workflow = Workflow(
    name="proofread",
    description="Drafts a text and has it read until it is good.",
    roles=(writer, reader),
    moderator={
        START: "writer",
        "writer": {"drafted": "reader", "declined": END},
        "reader": {"good": END, "again": "writer"},
    },
    result=result,
)
'''

TESTS = '''\
from uncaged_bundles.authoring import View
from uncaged_bundles.builders import build_workflow

from proofread import result, workflow


def step(role: str, **meta: object) -> dict[str, object]:
    return {"role": role, "content": "", "meta": meta, "timestamp": 0}


def test_the_workflow_builds() -> None:
    """The table and the schemas are valid, and the functions can be carried in a bundle."""
    assert build_workflow(workflow)


def test_the_last_draft_is_the_result() -> None:
    steps = [
        step("writer", status="drafted", text="Lunsh at noon."),
        step("reader", status="again", faults=["Lunsh"]),
        step("writer", status="drafted", text="Lunch at noon."),
        step("reader", status="good", faults=[]),
    ]
    found = result(View({"steps": steps}))
    assert found == {"success": True, "message": "Lunch at noon.", "data": {"drafts": 2}}


def test_a_declined_task_is_no_success() -> None:
    ctx = View({"steps": [step("writer", status="declined", text="There is no team.")]})
    assert not result(ctx)["success"]
'''

ANSWERS = """\
# What the scripted agent answers, in this order.
- role: writer
  answer: Here is the invitation.
  meta: {status: drafted, text: Lunsh at noon.}
- role: reader
  answer: One word is misspelt.
  meta: {status: again, faults: [Lunsh is spelt lunch]}
- role: writer
  answer: Fixed.
  meta: {status: drafted, text: Lunch at noon.}
- role: reader
  answer: Nothing left to fix.
  meta: {status: good, faults: []}
"""

FILES = {"proofread.py": DEFINITION, "test_proofread.py": TESTS, "answers.yaml": ANSWERS}


def write_starter(directory: Path) -> tuple[Path, ...]:
    """Write the files into *directory*, created if it is missing, and return their paths.

    Raises:
        UsageError: one of the files exists already (then none is written), or the directory cannot
            be written.
    """
    paths = tuple(directory / name for name in FILES)
    if there := [str(path) for path in paths if path.exists()]:
        raise UsageError(f"{there[0]!r} exists already; name another directory")
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{str(directory)!r} is a file; name a directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path in paths:
            path.write_text(FILES[path.name], encoding="utf-8")
    except OSError as exc:
        raise UsageError(
            f"cannot write {str(directory)!r}: {exc.strerror}; name another directory"
        ) from exc
    return paths
