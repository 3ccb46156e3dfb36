"""Checked and linked rules of a grammar and of the files that it imports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uncaged_dispatcher.grammar.problems import Problem
from uncaged_dispatcher.grammar.syntax import LinkedRules


@dataclass(frozen=True)
class Loaded:
    """Linked rules with the warnings about them."""

    rules: LinkedRules
    warnings: tuple[Problem, ...]


def load_rules(
    text: str,
    *,
    name: str = "main.agr",
    files: Mapping[str, str] | None = None,
    start_value_required: bool = True,
    value_expressions: bool = True,
) -> Loaded:
    """Return the linked rules of a grammar.

    Args:
        text: the grammar.
        name: its name in problems.
        files: texts of the files that imports may name, by their path relative to the grammar.
        start_value_required: refuse a ``<Start>`` with an alternative that has no value.
        value_expressions: accept operators, methods and templates in values, not only literals.
    Raises:
        GrammarError: the grammar has errors; all that were found are in ``problems``.
    """
    raise NotImplementedError
