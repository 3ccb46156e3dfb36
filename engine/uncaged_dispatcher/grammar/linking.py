"""Linked alternatives: spacing and implicit values are explicit in them."""

from __future__ import annotations

from collections.abc import Iterator

from uncaged_bundles.records import replace

from uncaged_dispatcher.grammar.scopes import Definition
from uncaged_dispatcher.grammar.syntax import (
    Alternative,
    Expression,
    Group,
    Literal,
    Part,
    PartValue,
    Spacing,
    Variable,
)
from uncaged_dispatcher.grammar.walking import captures


def linked_alternatives(definition: Definition) -> Iterator[Alternative]:
    """Yield the alternatives of all definitions of a rule, linked."""
    yield from definition.phrases
    for rule in definition.rules:
        for alternative in rule.alternatives:
            yield _linked(alternative, rule.spacing or Spacing.AUTO)


def _linked(alternative: Alternative, around: Spacing) -> Alternative:
    spacing = alternative.spacing or around
    parts = tuple(_linked_part(part, spacing) for part in alternative.parts)
    value = implicit_value(alternative) if alternative.value is None else alternative.value
    return replace(alternative, parts=parts, spacing=spacing, value=value)


def _linked_part(part: Part, spacing: Spacing) -> Part:
    if not isinstance(part, Group):
        return part
    return replace(part, alternatives=tuple(_linked(inner, spacing) for inner in part.alternatives))


def implicit_value(alternative: Alternative) -> Expression | None:
    """Return the value of an alternative without ``->``: that of its only variable; without
    variables that of its only group or reference, or of its only part.
    """
    own = list(captures(alternative))
    if own:
        return Variable(own[0].variable, own[0].at) if len(own) == 1 else None
    inner = [i for i, part in enumerate(alternative.parts) if not isinstance(part, Literal)]
    if len(inner) == 1:
        return PartValue(inner[0], alternative.parts[inner[0]].at)
    return PartValue(0, alternative.at) if not inner else None
