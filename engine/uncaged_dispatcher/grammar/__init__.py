"""Sentence grammar (`.agr`): parser, compiler, matcher, ranking and completion. Does no I/O."""

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
