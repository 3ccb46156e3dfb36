"""Compiled rules of a flow or a pack, as rows of the index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from uncaged_bundles.records import dataclass

from ..constructions.construction import Construction
from ..entities.captures import TEXT
from ..grammar.bounds import bound_of_readings
from ..grammar.compiled import CompiledGrammar, StartEntry, compile_patterns
from ..grammar.loading import load_rules
from ..grammar.patterns import NumberSlot, Pattern, Reference, Rules, Step, TextSlot
from ..grammar.problems import GrammarError
from ..grammar.requirements import ALWAYS, MAX_SETS, required_words
from ..grammar.syntax import PartValue, Repeat
from ..packs.pack import Pack
from ..packs.patterns import PatternRule, check_pattern, pattern_rule, pattern_rules
from .database import Requirement, RuleRow
from .fitting import GAP, NUMBER, first_run
from .shapes import shapes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSource:
    """The rules of a flow or a pack. problems: a sentence for each rule that was left out."""

    rules: tuple[RuleRow, ...]
    problems: tuple[str, ...] = ()


def compile_flow(digest: str, descriptor: Mapping[str, object]) -> CompiledSource:
    """Return the rules of a bundle's patterns. A pattern that is no rule hides no other."""
    rules: list[RuleRow] = []
    problems: list[str] = []
    for rule in pattern_rules(str(descriptor["name"]), descriptor):
        try:
            grammar = load_pattern(rule)
        except GrammarError as exc:
            problems.append(f"pattern {rule.pattern[:200]!r}: {exc.problems[0].message}")
            continue
        rules.append(_row(digest, rule.name, rule.pattern, grammar))
    return CompiledSource(rules=tuple(rules), problems=tuple(problems))


def compile_construction(digest: str, construction: Construction) -> CompiledSource:
    """Return the rule of a learned construction."""
    rule = pattern_rule(construction.flow, construction.pattern, construction.parameters)
    try:
        grammar = load_pattern(rule)
    except GrammarError as exc:
        problem = f"construction {construction.id}: {exc.problems[0].message}"
        return CompiledSource(rules=(), problems=(problem,))
    return CompiledSource(rules=(_row(digest, construction.id, rule.pattern, grammar),))


def load_pattern(rule: PatternRule) -> CompiledGrammar:
    """Return a pattern's compiled rule, which is the same for all flows that have it.

    Raises:
        GrammarError: the pattern is no rule.
    """
    check_pattern(rule.pattern)
    linked = load_rules(rule.common_text, name=rule.name).rules
    rules, names = compile_patterns(linked)
    # the start refers to the rule of the pattern only
    (pattern,) = rules[linked.start]
    return _reached(rules, _patterns_of(rules, pattern), names[0])


def compile_pack(digest: str, pack: Pack) -> CompiledSource:
    """Return the rules of a pack's own grammar, one for each alternative.

    Raises:
        GrammarError: the grammar cannot be used; a pack is refused whole.
    """
    if not pack.rules.strip():
        return CompiledSource(rules=())
    # on the first line, so that the places of problems are those of the file
    types = f"import {{ {', '.join(pack.entities)} }}; " if pack.entities else ""
    linked = load_rules(types + pack.rules, name=f"{pack.name}.agr").rules
    return CompiledSource(
        rules=tuple(
            _row(digest, part.entries[0].name, part.entries[0].name, part)
            for part in _separate(*compile_patterns(linked), linked.start)
        )
    )


def _separate(rules: Rules, names: Sequence[str], start: int) -> Iterator[CompiledGrammar]:
    """Yield a grammar for each alternative of the start, and for each alternative of a rule that
    the start refers to, with the rules that it reaches only.
    """
    for name, pattern in zip(names, rules[start], strict=True):
        for each in _patterns_of(rules, pattern):
            yield _reached(rules, (each,), name)


def _patterns_of(rules: Rules, pattern: Pattern) -> tuple[Pattern, ...]:
    """Return the patterns of the rule that a pattern consists of, or the pattern itself."""
    rule = _only_rule(pattern)
    return (pattern,) if rule is None else rules[rule]


def _reached(rules: Rules, first: tuple[Pattern, ...], name: str) -> CompiledGrammar:
    """Return the grammar of some patterns and the rules that they reach."""
    numbers: dict[int, int] = {}
    kept = [tuple(_renumbered(each, numbers) for each in first)]
    for old in _growing(numbers):
        kept.append(tuple(_renumbered(each, numbers) for each in rules[old]))
    required = required_words(tuple(kept), 0)
    entries = tuple(StartEntry(name, words) for words in required)
    return CompiledGrammar(rules=tuple(kept), start=0, entries=entries)


def _only_rule(pattern: Pattern) -> int | None:
    """Return the rule that a pattern consists of and whose value it passes on."""
    match pattern.steps, pattern.value:
        case (Step(part=Reference(rule=rule), repeat=Repeat.ONCE),), PartValue():
            return rule
        case _:
            return None


def _growing(numbers: dict[int, int]) -> Iterator[int]:
    """Yield the keys of a mapping that grows meanwhile."""
    at = 0
    while added := list(islice(numbers, at, None)):
        yield from added
        at += len(added)


def _renumbered(pattern: Pattern, numbers: dict[int, int]) -> Pattern:
    """Return a pattern whose references have numbers from 1 on, in the order of their first use,
    and whose free captures have a type, so that readings hold their places.
    """
    steps: list[Step] = []
    for step in pattern.steps:
        match step.part:
            case Reference(rule=rule, variable=variable):
                number = numbers.setdefault(rule, len(numbers) + 1)
                steps.append(Step(Reference(number, variable), step.repeat))
            case TextSlot(variable=variable, entity=""):
                steps.append(Step(TextSlot(variable, TEXT), step.repeat))
            case _:
                steps.append(step)
    return pattern.with_steps(tuple(steps))


def _row(digest: str, name: str, pattern: str, grammar: CompiledGrammar) -> RuleRow:
    body = json.dumps(grammar.document(), ensure_ascii=False, separators=(",", ":"))
    return RuleRow(
        digest=digest,
        name=name,
        pattern=pattern,
        body=body,
        required=tuple(dict.fromkeys(_requirements(grammar))),
        bound=bound_of_readings(grammar.rules, grammar.start, TEXT),
    )


def _requirements(grammar: CompiledGrammar) -> Iterator[Requirement]:
    """Yield the requirements of which a sentence must meet one."""
    for entry, pattern in zip(grammar.entries, grammar.rules[grammar.start], strict=True):
        mark = _number_mark(pattern)
        for shape in shapes_of(grammar.rules, pattern, MAX_SETS // max(1, len(entry.required))):
            for words in entry.required:
                # without a gap the sentence has no other words
                if GAP in shape or words.issubset(first_run(shape)):
                    yield Requirement(words | mark, shape)


def _number_mark(pattern: Pattern) -> frozenset[str]:
    """Return the mark of a pattern that reads no sentence without a number."""
    has_number = any(
        isinstance(step.part, NumberSlot) and step.repeat in ALWAYS for step in pattern.steps
    )
    return frozenset({NUMBER}) if has_number else frozenset()
