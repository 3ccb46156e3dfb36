"""Properties that rules inherit from rules: taking no text, having a value, and loops.

All of them take time linear in the grammar and no recursion over rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from uncaged_dispatcher.grammar.syntax import (
    Alternative,
    Capture,
    Group,
    LinkedRule,
    Literal,
    Part,
    PartValue,
    Repeat,
    RuleCapture,
    RuleRef,
)

Clause = tuple[object, list[object]]
"""A fact that holds when all the listed facts hold."""


def derive(clauses: Iterable[Clause]) -> set[object]:
    """Return all facts that follow from clauses; one with nothing listed holds at once."""
    missing: list[int] = []
    heads: list[object] = []
    uses: defaultdict[object, list[int]] = defaultdict(list)
    waiting: list[object] = []
    for head, needed in clauses:
        for fact in needed:
            uses[fact].append(len(heads))
        heads.append(head)
        missing.append(len(needed))
        if not needed:
            waiting.append(head)
    facts: set[object] = set()
    while waiting:
        fact = waiting.pop()
        if fact in facts:
            continue
        facts.add(fact)
        for clause in uses[fact]:
            missing[clause] -= 1
            if missing[clause] == 0:
                waiting.append(heads[clause])
    return facts


def nullable(rules: Sequence[LinkedRule]) -> set[object]:
    """Return the places of the rules, and the identities of the groups, that match no text."""
    return derive(
        clause
        for place, rule in enumerate(rules)
        for clause in _nullable_clauses(("rule", place), rule.alternatives, rule)
    )


def _nullable_clauses(
    head: object, alternatives: Iterable[Alternative], rule: LinkedRule
) -> Iterator[Clause]:
    for alternative in alternatives:
        needed: list[object] = []
        for part in alternative.parts:
            match part:
                case Literal() | Capture(optional=False):
                    needed.append("never")
                case Capture() | RuleCapture(optional=True):
                    pass
                case RuleCapture(rule=name) | RuleRef(rule=name):
                    needed.append(("rule", rule.targets.get(name)))
                case Group():
                    needed.append(id(part))
                    yield from _group_clauses(part, rule)
        yield head, needed


def _group_clauses(group: Group, rule: LinkedRule) -> Iterator[Clause]:
    if group.repeat in (Repeat.OPTIONAL, Repeat.ANY):
        yield id(group), []
    yield from _nullable_clauses(id(group), group.alternatives, rule)


def loops(rules: Sequence[LinkedRule], start: int) -> Iterator[tuple[int, int, str]]:
    """Yield each reference by which a rule reaches itself before it takes any text, as the place of
    its rule, its offset, and the name of the rule that it loops to.
    """
    facts = nullable(rules)
    done: set[int] = set()
    for root in (start, *range(len(rules))):
        if root in done:
            continue
        path = {root}
        stack = [(root, _first_references(rules[root], facts))]
        while stack:
            place, references = stack[-1]
            for name, at in references:
                target = rules[place].targets.get(name)
                if target is None or target in done:
                    continue
                if target in path:
                    yield place, at, name
                    continue
                path.add(target)
                stack.append((target, _first_references(rules[target], facts)))
                break
            else:
                stack.pop()
                path.discard(place)
                done.add(place)


def _first_references(rule: LinkedRule, facts: set[object]) -> Iterator[tuple[str, int]]:
    """Yield the references of a rule that can be reached before any text is taken."""
    for alternative in rule.alternatives:
        yield from _first_of_parts(alternative.parts, rule, facts)


def _first_of_parts(
    parts: Iterable[Part], rule: LinkedRule, facts: set[object]
) -> Iterator[tuple[str, int]]:
    for part in parts:
        match part:
            case Literal():
                return
            case Capture(optional=optional):
                if not optional:
                    return
            case RuleRef(rule=name, at=at) | RuleCapture(rule=name, rule_at=at):
                yield name, at
                optional = isinstance(part, RuleCapture) and part.optional
                if not optional and ("rule", rule.targets.get(name)) not in facts:
                    return
            case Group():
                for alternative in part.alternatives:
                    yield from _first_of_parts(alternative.parts, rule, facts)
                if id(part) not in facts:
                    return


def without_value(rules: Sequence[LinkedRule]) -> set[object]:
    """Return ``("rule", place)`` for each rule that has an alternative without a value."""
    return derive(
        clause
        for place, rule in enumerate(rules)
        for clause in _valueless_clauses(("rule", place), rule.alternatives, rule)
    )


def _valueless_clauses(
    head: object, alternatives: Iterable[Alternative], rule: LinkedRule
) -> Iterator[Clause]:
    for alternative in alternatives:
        if alternative.value is None:
            yield head, []
        elif isinstance(alternative.value, PartValue):
            part = alternative.parts[alternative.value.index]
            if isinstance(part, RuleRef):
                yield head, [("rule", rule.targets.get(part.rule))]
            elif isinstance(part, Group):
                yield from _valueless_clauses(head, part.alternatives, rule)
