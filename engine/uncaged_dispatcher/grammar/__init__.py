"""Sentence grammar (`.agr`): parser, compiler, matcher, ranking and completion. Does no I/O.

A public name is imported at its first use: reading a sentence with compiled rules imports neither
the parser nor completion, which would take as long as everything that it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uncaged_dispatcher.grammar.completion import (
        Completion,
        CompletionGroup,
        CompletionProperty,
    )
    from uncaged_dispatcher.grammar.files import imported_files
    from uncaged_dispatcher.grammar.grammars import Grammar, load
    from uncaged_dispatcher.grammar.matching import Readings
    from uncaged_dispatcher.grammar.parsing import parse
    from uncaged_dispatcher.grammar.problems import GrammarError, Problem
    from uncaged_dispatcher.grammar.readings import Entity, Rank, Reading
    from uncaged_dispatcher.grammar.sentences import SentenceError

__all__ = [
    "Completion",
    "CompletionGroup",
    "CompletionProperty",
    "Entity",
    "Grammar",
    "GrammarError",
    "Problem",
    "Rank",
    "Reading",
    "Readings",
    "SentenceError",
    "imported_files",
    "load",
    "parse",
]
_MODULES = {
    "completion": ("Completion", "CompletionGroup", "CompletionProperty"),
    "files": ("imported_files",),
    "grammars": ("Grammar", "load"),
    "matching": ("Readings",),
    "parsing": ("parse",),
    "problems": ("GrammarError", "Problem"),
    "readings": ("Entity", "Rank", "Reading"),
    "sentences": ("SentenceError",),
}


def __getattr__(name: str) -> object:
    """Import a public name."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
