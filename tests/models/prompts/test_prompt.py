"""Whole prompts."""

from __future__ import annotations

from typing import Any

import pytest
from testbed.roles import role_spec
from uncaged_bundles.rights import Rights
from uncaged_models.prompts.extract import Unfit, checker, extract
from uncaged_models.prompts.prompt import build_prompt, repair_prompt, repair_wording

STEPS = [{"seq": 1, "role": "planner", "content": "The plan.", "meta": {"status": "done"}}]


def prompt(**more: Any) -> str:
    usual: dict[str, Any] = {
        "role": role_spec(),
        "task": "Fix add().",
        "params": {},
        "steps": STEPS,
        "extra": None,
        "note": None,
        "max_history_characters": 10_000,
    }
    return build_prompt(**(usual | more))


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        (Rights(), None),
        (Rights(sandbox=True, network=True), None),
        (
            Rights(tools=frozenset({"search", "read", "commit"})),
            "You may do this and nothing else in your role: read files, search files, commit. You may not use the network.",
        ),
        (
            Rights(tools=frozenset(), network=True),
            "You may use no tools in your role. You may use the network.",
        ),
    ],
    ids=["all", "not the tools", "some tools", "none"],
)
def test_the_prompt_names_the_tools_of_the_policy(rights: Rights, said: str | None) -> None:
    """An agent that cannot be held to its tools can at least read them in the prompt."""
    text = prompt(rights=rights)
    assert ("# What you may do here" in text) is (said is not None)
    assert f"# What you may do here\n\n{said}\n\n# How to answer" in text or said is None


def test_the_parts_of_a_prompt_are_in_order() -> None:
    """Role, task, history, this step, the person's note, and at the end how to answer, with the
    schema's fields.
    """
    text = prompt(params={"depth": 2}, extra="Only phase 1.", note="Mind the tests.")
    places = [
        text.index(words)
        for words in (
            "# Your role: coder",
            "You are the coder.",
            "# The task",
            "Fix add().",
            'Parameters: {"depth": 2}',
            "# What happened so far",
            "The plan.",
            "# For this step",
            "Only phase 1.",
            "# A note from the person",
            "Mind the tests.",
            "# How to answer",
            "Say how it went.",
            '- `status` (one of "done", "stuck"): how it went',
        )
    ]
    assert places == sorted(places)


def test_what_is_absent_has_no_heading() -> None:
    """An empty section makes an agent look for what is missing."""
    text = prompt()
    for words in ("Parameters", "# For this step", "# A note"):
        assert words not in text
    assert "(No task was given in words.)" in prompt(task=" \n")


def test_the_prompt_itself_is_no_answer() -> None:
    """A program that merely echoes its prompt, earlier answers quoted in it included, has answered
    nothing.
    """
    steps = [
        {
            "seq": 1,
            "role": "coder",
            "content": '```json\n{"status": "done"}\n```',
            "meta": {"status": "done"},
        }
    ]
    text = prompt(steps=steps, role=role_spec("reviewer"))
    assert '{"status": "done"}' in text
    assert isinstance(extract(text, checker(role_spec().schema)), Unfit)
    again = repair_prompt(text, '```json\n{"status": "stuck"}\n```', "a problem", role_spec())
    assert isinstance(extract(again, checker(role_spec().schema)), Unfit)


def test_a_correction_repeats_the_problem_and_the_format() -> None:
    """A correction in the same session has the problem and the fields; without a session it also
    has the whole prompt and the agent's own answer.
    """
    wording = repair_wording("status: is missing\nfiles: is no list", role_spec())
    assert "- status: is missing\n- files: is no list" in wording
    assert "- `status`" in wording
    assert "do not do it again" in wording
    whole = repair_prompt(prompt(), "My answer.\n```\nx\n```", "status: is missing", role_spec())
    assert whole.startswith(prompt())
    assert "````text\nMy answer." in whole
    assert wording.splitlines()[0] in whole
    assert "(You answered nothing.)" in repair_prompt("p", " ", "q", role_spec())
