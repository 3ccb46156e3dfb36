"""Completion of the beginning of a sentence: the words and captures that can come next."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from uncaged_bundles.records import dataclass

from uncaged_dispatcher.grammar.compiled import CompiledGrammar
from uncaged_dispatcher.grammar.continuations import Continuation, Direction, find_continuations
from uncaged_dispatcher.grammar.holes import unfilled
from uncaged_dispatcher.grammar.occurrences import Occurrences
from uncaged_dispatcher.grammar.readings import json_value
from uncaged_dispatcher.grammar.sentences import Sentence
from uncaged_dispatcher.grammar.syntax import UNDEFINED, Spacing


class SeparatorMode(StrEnum):
    """Text between the matched beginning and a continuation: space or punctuation, the same where
    the scripts want it, the same or nothing, nothing.
    """

    REQUIRED = "spacePunctuation"
    AUTO = "autoSpacePunctuation"
    OPTIONAL = "optionalSpacePunctuation"
    NONE = "none"


class AfterWildcard(StrEnum):
    """How many of the offered words follow a free capture that could end elsewhere."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


SEPARATORS: Final = {
    Spacing.REQUIRED: SeparatorMode.REQUIRED,
    Spacing.AUTO: SeparatorMode.AUTO,
    Spacing.OPTIONAL: SeparatorMode.OPTIONAL,
    Spacing.NONE: SeparatorMode.NONE,
}


@dataclass(frozen=True, slots=True)
class CompletionGroup:
    """Words with the same text before them."""

    completions: tuple[str, ...]
    separator_mode: SeparatorMode


@dataclass(frozen=True, slots=True)
class CompletionProperty:
    """A capture that can be filled in next.

    value: the value that the sentence has so far; `UNDEFINED` for none. names: the capture's places
    in that value, as paths with dots; the whole value is the empty path.
    """

    value: object
    names: tuple[str, ...]
    separator_mode: SeparatorMode


@dataclass(frozen=True, slots=True)
class Completion:
    """Continuations of the longest beginning of a text that the grammar reads.

    matched_prefix_length: the length of that beginning; what is typed after it is to be replaced.
    closed_set: the words are the only continuations. direction_sensitive: the other direction can
    give another answer.
    """

    groups: tuple[CompletionGroup, ...] = ()
    matched_prefix_length: int = 0
    closed_set: bool = True
    direction_sensitive: bool = False
    after_wildcard: AfterWildcard = AfterWildcard.NONE
    properties: tuple[CompletionProperty, ...] = ()

    def document(self) -> dict[str, object]:
        """Return the completion as JSON."""
        return {
            "groups": [
                {"completions": list(g.completions), "separatorMode": g.separator_mode.value}
                for g in self.groups
            ],
            "matchedPrefixLength": self.matched_prefix_length,
            "closedSet": self.closed_set,
            "directionSensitive": self.direction_sensitive,
            "afterWildcard": self.after_wildcard.value,
            "properties": [
                {
                    **({} if p.value is UNDEFINED else {"match": json_value(p.value)}),
                    "propertyNames": list(p.names),
                    "separatorMode": p.separator_mode.value,
                }
                for p in self.properties
            ],
        }


def complete_prefix(
    grammar: CompiledGrammar, prefix: str, direction: Direction = Direction.FORWARD
) -> Completion:
    """Return the continuations of a text.

    Raises:
        SentenceError: the text cannot be read, or the search took too many steps.
    """
    sentence = Sentence(prefix)
    places = Occurrences(sentence, whole_words=True)
    found = find_continuations(grammar, places, direction)
    place, offered = _farthest(found, sentence)
    words = [item for item in offered if item.word is not None]
    after = sum(item.after_text for item in words)
    holes = {
        (item.hole.activation, item.hole.step): (item.hole, item.spacing)
        for item in offered
        if item.hole is not None
    }
    properties = tuple(
        CompletionProperty(*unfilled(places, hole), SEPARATORS[spacing])
        for hole, spacing in holes.values()
    )
    return Completion(
        groups=_groups(words),
        matched_prefix_length=place,
        closed_set=not properties,
        direction_sensitive=place > 0,
        after_wildcard=AfterWildcard.NONE
        if not after
        else AfterWildcard.ALL
        if after == len(words)
        else AfterWildcard.SOME,
        properties=properties,
    )


def _farthest(found: Iterable[Continuation], sentence: Sentence) -> tuple[int, list[Continuation]]:
    """Return the farthest place of a continuation, and the continuations there.

    A continuation after open text fits any place in that text. It goes to the end of the sentence,
    but joins a word there that has been begun, and in the backward direction all others.
    """
    fixed = [item for item in found if item.open_from is None]
    movable = [item for item in found if item.open_from is not None]
    end = sentence.trimmed[sentence.size]
    place = max((item.place for item in fixed), default=0)
    there = [item for item in fixed if item.place == place]
    at_end = [item for item in movable if item.at_end]
    if at_end and place < end and not any(item.begun for item in there):
        return end, at_end
    joining = [item for item in movable if item.open_from is not None and item.open_from < place]
    return place, there + joining


def _groups(words: Iterable[Continuation]) -> tuple[CompletionGroup, ...]:
    """Return the words by the text before them, each once, in the order of the grammar."""
    groups: dict[SeparatorMode, dict[str, None]] = {}
    for item in words:
        if item.word is not None:
            groups.setdefault(SEPARATORS[item.spacing], {})[item.word] = None
    return tuple(CompletionGroup(tuple(group), mode) for mode, group in groups.items())
