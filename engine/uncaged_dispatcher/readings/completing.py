"""Completion of the beginning of a sentence by the rules of a store. Each group of words has the
length of the text that its rules read before it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from uncaged_bundles.records import dataclass

from ..grammar.compiled import CompiledGrammar
from ..grammar.completion import Completion, complete_prefix
from ..grammar.continuations import Direction
from .interpreter import Interpreter

BUDGET_S = 0.25
"""Processor time of one completion; the rules that are left then are not asked."""
MAX_RULES = 2_000
"""Rules of a store that are kept for completion."""
MAX_WORDS = 100
MAX_PROPERTIES = 20


class EnabledRules:
    """The rules of a store as they are now, loaded again after a change. They belong to the thread
    of execution of their interpreter.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._seen: object = None
        self._grammars: list[CompiledGrammar] = []

    def read(self) -> list[CompiledGrammar]:
        """Return the rules."""
        index = self._interpreter.index
        index.refresh()
        if index.seen != self._seen:
            rules = index.enabled_grammars()
            self._grammars = [grammar for _, grammar in zip(range(MAX_RULES), rules, strict=False)]
            self._seen = index.seen
        return self._grammars

    def close(self) -> None:
        """Close the interpreter."""
        self._interpreter.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class WordGroup:
    """Words that can follow the first *matched* characters, with the same text before them."""

    words: tuple[str, ...]
    separator_mode: str
    matched: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceCompletion:
    """Continuations of a text, those that read most of it first. closed_set: no capture can come
    next. captures: the names of those that can. cut: not all rules were asked, or words left out.
    """

    groups: tuple[WordGroup, ...]
    captures: tuple[str, ...]
    closed_set: bool
    cut: bool

    def document(self) -> dict[str, object]:
        """Return the completion as JSON."""
        return {
            "groups": [
                {
                    "completions": list(group.words),
                    "separatorMode": group.separator_mode,
                    "matchedPrefixLength": group.matched,
                }
                for group in self.groups
            ],
            "captures": list(self.captures),
            "closedSet": self.closed_set,
            "cut": self.cut,
        }


def complete_sentence(
    grammars: Iterable[CompiledGrammar],
    prefix: str,
    direction: Direction,
    *,
    budget_s: float = BUDGET_S,
) -> SentenceCompletion:
    """Return the words that can come next.

    Raises:
        SentenceError: the text cannot be read.
    """
    until = time.thread_time() + budget_s
    found: dict[tuple[int, str], dict[str, None]] = {}
    captures: dict[str, None] = {}
    cut = False
    for grammar in grammars:
        if time.thread_time() > until:
            cut = True
            break
        completion = complete_prefix(grammar, prefix, direction)
        place = completion.matched_prefix_length
        # a rule that read nothing of the text says nothing about it
        typed = prefix[place:].strip().casefold()
        if direction is Direction.FORWARD and " " in typed:
            continue
        for group in completion.groups:
            words = found.setdefault((place, group.separator_mode.value), {})
            words.update(dict.fromkeys(_fitting(group.completions, typed, direction)))
        if not typed:
            captures.update(dict.fromkeys(_capture_names(completion)))
    groups = [
        WordGroup(words=tuple(words)[:MAX_WORDS], separator_mode=mode, matched=place)
        for (place, mode), words in sorted(found.items(), reverse=True)
        if words
    ]
    return SentenceCompletion(
        groups=tuple(groups),
        captures=tuple(captures)[:MAX_PROPERTIES],
        closed_set=not captures,
        cut=cut or any(len(words) > MAX_WORDS for words in found.values()),
    )


def _fitting(words: Iterable[str], typed: str, direction: Direction) -> list[str]:
    """Return the words that begin with what is typed; backward, the last word is offered again."""
    if direction is Direction.BACKWARD:
        return list(words)
    return [word for word in words if word.casefold().startswith(typed)]


def _capture_names(completion: Completion) -> list[str]:
    return [
        name.rpartition(".")[2]
        for capture in completion.properties
        for name in capture.names
        if name
    ]
