"""Comparison of two versions of a flow, most important first: policy, roles, schemas, graph,
source.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from uncaged_bundles.contract import Graph
from uncaged_bundles.policy import widening
from uncaged_bundles.validation.validate import Bundle

from ..effect_kinds import KNOWN
from .graphs import as_text, edges_of_table

REVERSED = (
    (re.compile(r" now also (.*) \(was .*\)$"), r" no longer \1"),
    (
        re.compile(r" is now set to (.*) \(was left to the default\)$"),
        r" was \1, is left to the default now",
    ),
    (re.compile(r" is no longer set \(was (.*)\)$"), r" was not set, is now \1"),
    (re.compile(r" is now (.*) \(was (.*)\)$"), r" was \1, is now \2"),
)
PROMPTS = {
    "description": "description",
    "systemPrompt": "system_prompt",
    "extractPrompt": "extract_prompt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The differences under one heading: lines that begin with ``+``, ``-``, ``@`` or a space."""

    title: str
    lines: tuple[str, ...]


def compare(old: Bundle, new: Bundle) -> list[Section]:
    """Return the sections in which *new* differs from *old*; none when they are the same bytes."""
    before, after = old.descriptor, new.descriptor
    sections = [
        Section(title="policy", lines=_policy(old, new)),
        Section(title="description", lines=_texts(before.description, after.description)),
        Section(title="roles", lines=_roles(old, new)),
        Section(title="schemas", lines=_schemas(old, new)),
        Section(title="parameters", lines=_values(before.parameters, after.parameters)),
        Section(title="graph", lines=_unified(_graph(before.graph), _graph(after.graph))),
        Section(
            title="source",
            lines=_texts(
                old.source.decode("utf-8", "replace"), new.source.decode("utf-8", "replace")
            ),
        ),
    ]
    return [section for section in sections if section.lines]


def _policy(old: Bundle, new: Bundle) -> tuple[str, ...]:
    gained = widening(old.descriptor.policy, new.descriptor.policy, KNOWN)
    lost = widening(new.descriptor.policy, old.descriptor.policy, KNOWN)
    return (
        *(f"+ {sentence}" for sentence in gained),
        *(f"- {reversed_sentence(sentence)}" for sentence in lost),
    )


def reversed_sentence(sentence: str) -> str:
    """Return a sentence about gained rights, reworded for the same rights being lost."""
    for pattern, words in REVERSED:
        turned = pattern.sub(words, sentence)
        if turned != sentence:
            return turned
    return sentence


def _roles(old: Bundle, new: Bundle) -> tuple[str, ...]:
    before, after = old.descriptor.roles, new.descriptor.roles
    lines = [f"+ {name}: {role.description}" for name, role in after.items() if name not in before]
    lines += [f"- {name}: {role.description}" for name, role in before.items() if name not in after]
    for name in before:
        if name in after:
            for title, field in PROMPTS.items():
                changed = _texts(getattr(before[name], field), getattr(after[name], field))
                lines += [f"@ {name}: {title}", *changed[1:]] if changed else []
    return tuple(lines)


def _schemas(old: Bundle, new: Bundle) -> tuple[str, ...]:
    before, after = old.descriptor.roles, new.descriptor.roles
    lines: list[str] = []
    for name in before:
        if name in after and (changed := _values(before[name].schema, after[name].schema)):
            lines += [f"@ {name}", *changed[1:]]
    return tuple(lines)


def _graph(graph: Graph | None) -> Sequence[str]:
    return as_text(edges_of_table(graph)) if graph else []


def _values(before: object, after: object) -> tuple[str, ...]:
    return _texts(
        json.dumps(before, indent=2, sort_keys=True), json.dumps(after, indent=2, sort_keys=True)
    )


def _texts(before: str, after: str) -> tuple[str, ...]:
    return _unified(before.split("\n"), after.split("\n"))


def _unified(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    lines = list(difflib.unified_diff(before, after, lineterm="", n=2))
    return tuple(lines[2:])  # without the two lines of file names
