"""Scripted model that fixes a flow: it reads `flow.json`, writes another recipe, and answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ..outside.scripted_model import Call, Conversation, Play
from .case import Recipe

__all__ = ["editing"]

FILE = "flow.json"
FIXER = "# Your role: fixer"
FIELD = re.compile(r"^- `(\w+)` \(([^)]*)\)", re.MULTILINE)
"""A field of the answer in a role's prompt: its name and kind."""
REASON = "The world changed, so the recipe does."


def editing(conversation: Conversation, recipe: Recipe | None) -> Play:
    """Look at the failure, in the role that fixes write the recipe; without a recipe report that
    nothing can be done.
    """
    names = ("error.txt", "journal.jsonl", FILE)
    yield [Call(tool="read", arguments={"path": name}) for name in names]
    if recipe is not None and FIXER in conversation.text:
        text = json.dumps(recipe, indent=2) + "\n"
        yield [Call(tool="write", arguments={"path": FILE, "text": text})]
    answer = filled(conversation.text, able=recipe is not None)
    return f"This is the cause and the change.\n\n```json\n{json.dumps(answer)}\n```\n"


def filled(text: str, *, able: bool) -> Mapping[str, str]:
    """Return an answer with the fields that a role's prompt lists: the first of several choices,
    the last if nothing can be done.
    """
    found: dict[str, str] = {}
    for name, kind in FIELD.findall(text):
        choices = re.findall(r'"([^"]+)"', kind) if kind.startswith("one of") else [REASON]
        found[name] = choices[0 if able else -1]
    return found
