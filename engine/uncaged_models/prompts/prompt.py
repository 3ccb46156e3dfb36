"""Prompt of a role: its instructions, the task, the history, and the answer format, in one text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from uncaged_bundles.contract import RoleSpec
from uncaged_bundles.rights import TOOLS, Rights

from .fences import fenced
from .fields import describe_fields
from .history import cut, history_text

MAX_OWN_ANSWER_CHARACTERS = 20_000
HOW_TO_ANSWER = "# How to answer"
"""Heading of the last part, which a form for people leaves out."""


def build_prompt(
    *,
    role: RoleSpec,
    task: str,
    params: Mapping[str, object],
    steps: Sequence[Mapping[str, object]],
    extra: str | None,
    note: str | None,
    max_history_characters: int,
    rights: Rights | None = None,
) -> str:
    """Return the whole prompt for one step of *role*.

    Args:
        steps: the role steps so far. extra: the bundle's text for this step. note: the text of
            ``resume --note``.
        rights: described even to agents that cannot be confined to them.
    """
    parts = [
        f"# Your role: {role.name}",
        role.system_prompt.strip(),
        "# The task",
        task.strip() or "(No task was given in words.)",
    ]
    if params:
        parts.append(f"Parameters: {json.dumps(params, ensure_ascii=False)}")
    parts += ["# What happened so far", history_text(steps, role.name, max_history_characters)]
    if extra:
        parts += ["# For this step", extra.strip()]
    if rights is not None and rights.tools is not None:
        parts += ["# What you may do here", allowed_in_words(rights)]
    if note:
        parts += ["# A note from the person who runs this", note.strip()]
    parts += [HOW_TO_ANSWER, answer_format(role)]
    return "\n\n".join(part for part in parts if part) + "\n"


DOING = {
    "list": "list directories",
    "read": "read files",
    "search": "search files",
    "edit": "change parts of files",
    "write": "write, move and delete files",
    "run": "run commands",
    "commit": "commit",
}


def allowed_in_words(rights: Rights) -> str:
    doing = [DOING[tool] for tool in TOOLS if rights.may(tool)]
    network = " You may use the network." if rights.network else " You may not use the network."
    return (
        f"You may do this and nothing else in your role: {', '.join(doing)}."
        if doing
        else "You may use no tools in your role."
    ) + network


def answer_format(role: RoleSpec) -> str:
    wanted = role.extract_prompt.strip()
    rule = (
        "End your answer with exactly one fenced block, tagged json, that holds one JSON object. Nothing comes after it, and no other block"
        " is tagged json. Fill in every field from what you did and found; its fields are:"
    )
    read = f"Your answer will be read by these rules:\n\n{wanted}" if wanted else ""
    return "\n\n".join(part for part in (read, rule, describe_fields(role.schema)) if part)


def repair_wording(problem: str, role: RoleSpec) -> str:
    """Return the request for a corrected answer, for an agent that has a session."""
    told = "\n".join(f"- {line}" for line in problem.splitlines())
    return "\n\n".join(
        (
            "# Your answer could not be used",
            f"What you did stays as it is; do not do it again. Only the structured block was wrong:\n\n{told}",
            "Answer once more, with the block put right. " + answer_format(role),
        )
    )


def repair_prompt(prompt: str, answer: str, problem: str, role: RoleSpec) -> str:
    """Return the request for a corrected answer with the whole prompt, for an agent without a
    session.
    """
    own = (
        fenced(cut(answer, MAX_OWN_ANSWER_CHARACTERS))
        if answer.strip()
        else "(You answered nothing.)"
    )
    return f"{prompt}\n# Your answer to the above\n\n{own}\n\n{repair_wording(problem, role)}\n"
