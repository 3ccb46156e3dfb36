"""Sentence grammar (`.agr`): parser, compiler, matcher, ranking and completion. Does no I/O."""

from uncaged_dispatcher.grammar.files import imported_files
from uncaged_dispatcher.grammar.grammars import Grammar, load
from uncaged_dispatcher.grammar.parsing import parse
from uncaged_dispatcher.grammar.problems import GrammarError, Problem

__all__ = ["Grammar", "GrammarError", "Problem", "imported_files", "load", "parse"]
