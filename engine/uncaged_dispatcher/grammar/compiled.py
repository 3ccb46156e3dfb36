"""Compiled rules of a grammar: steps for the matchers, as data that JSON can keep.

A group becomes a rule of its own, and every reference the number of its rule. An *entry* is one
alternative of the start rule: an index chooses entries by `required` words without a matcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uncaged_bundles.records import dataclass

from uncaged_dispatcher.grammar import syntax
from uncaged_dispatcher.grammar.patterns import (
    NumberSlot,
    Pattern,
    Phrase,
    Reference,
    Rules,
    Step,
    TextSlot,
)
from uncaged_dispatcher.grammar.requirements import WordSets, required_words
from uncaged_dispatcher.grammar.sentences import Sentence, index_words
from uncaged_dispatcher.grammar.syntax import Repeat, Spacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FORMAT: Final = 2
"""Version of the document that `CompiledGrammar.document` makes."""


@dataclass(frozen=True, slots=True)
class StartEntry:
    """One alternative of the start rule.

    name: the rule that it consists of, else ``Start``. required: sets of words; a sentence that
    holds no whole set has no reading by this entry. One empty set means that nothing is required.
    """

    name: str
    required: WordSets


@dataclass(frozen=True, slots=True)
class CompiledGrammar:
    """Rules by number; ``rules[start]`` has one pattern for each of ``entries``."""

    rules: Rules
    start: int
    entries: tuple[StartEntry, ...]

    def document(self) -> dict[str, object]:
        """Return the rules as JSON."""
        return {
            "format": FORMAT,
            "start": self.start,
            "entries": [[e.name, [sorted(words) for words in e.required]] for e in self.entries],
            "rules": [[pattern.document() for pattern in patterns] for patterns in self.rules],
        }

    def candidates(self, sentence: Sentence) -> list[int]:
        """Return the entries whose required words the sentence holds; no other has a reading in
        whole words.
        """
        held = set(index_words(sentence.folded))
        return [
            number
            for number, entry in enumerate(self.entries)
            if any(words <= held for words in entry.required)
        ]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> CompiledGrammar:
        """Return the rules of a `document`.

        Raises:
            ValueError: the document has another format.
        """
        if document.get("format") != FORMAT:
            raise ValueError(f"compiled rules of format {document.get('format')!r}, not {FORMAT}")
        return cls(
            tuple(
                tuple(Pattern.read(pattern) for pattern in patterns)
                for patterns in document["rules"]
            ),
            document["start"],
            tuple(
                StartEntry(name, tuple(frozenset(words) for words in required))
                for name, required in document["entries"]
            ),
        )


def compile_rules(linked: syntax.LinkedRules) -> CompiledGrammar:
    """Return the compiled form of linked rules."""
    rules, names = compile_patterns(linked)
    required = required_words(rules, linked.start)
    return CompiledGrammar(rules, linked.start, tuple(map(StartEntry, names, required)))


def compile_patterns(linked: syntax.LinkedRules) -> tuple[Rules, tuple[str, ...]]:
    """Return the patterns of linked rules, and the name of each alternative of the start."""
    compiler = _Compiler(linked)
    return compiler.rules(), tuple(compiler.entry_names())


class _Compiler:
    """Numbers for groups: they follow the linked rules in the order in which they are met."""

    def __init__(self, linked: syntax.LinkedRules) -> None:
        self.linked = linked
        self.sources = [(rule.alternatives, rule.targets) for rule in linked.rules]

    def rules(self) -> Rules:
        """Return the patterns of all rules and groups."""
        compiled = []
        for alternatives, targets in self.sources:  # grows while it is read
            compiled.append(tuple(self.pattern(a, targets) for a in alternatives))
        return tuple(compiled)

    def entry_names(self) -> Iterator[str]:
        """Yield the name of each alternative of the start rule."""
        for alternative in self.linked.rules[self.linked.start].alternatives:
            match alternative.parts:
                case (syntax.RuleRef(rule=name) | syntax.RuleCapture(rule=name),):
                    yield name
                case _:
                    yield "Start"

    def pattern(self, source: syntax.Alternative, targets: Mapping[str, int]) -> Pattern:
        """Return the compiled form of an alternative."""
        steps = tuple(self.step(part, targets) for part in source.parts)
        return Pattern(source.spacing or Spacing.AUTO, steps, source.value)

    def step(self, part: syntax.Part, targets: Mapping[str, int]) -> Step:
        """Return the compiled form of one part."""
        match part:
            case syntax.Literal(words=words):
                return Step(Phrase.of(words))
            case syntax.Capture():
                repeat = Repeat.OPTIONAL if part.optional else Repeat.ONCE
                if part.number:
                    return Step(NumberSlot(part.variable), repeat)
                return Step(TextSlot(part.variable, "" if part.free else part.type), repeat)
            case syntax.RuleCapture(variable=variable, rule=rule, optional=optional):
                repeat = Repeat.OPTIONAL if optional else Repeat.ONCE
                return Step(Reference(targets[rule], variable), repeat)
            case syntax.RuleRef(rule=rule):
                return Step(Reference(targets[rule]))
            case syntax.Group(alternatives=alternatives, repeat=repeat):
                self.sources.append((alternatives, targets))
                return Step(Reference(len(self.sources) - 1), repeat)
