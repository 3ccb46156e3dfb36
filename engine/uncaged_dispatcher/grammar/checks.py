"""Checks of single rules: names, variables and types; and warnings about what is not used."""

from __future__ import annotations

from collections.abc import Iterator

from uncaged_dispatcher.grammar.problems import Problem
from uncaged_dispatcher.grammar.scopes import Definition, FileNames, Names, references, types_of
from uncaged_dispatcher.grammar.syntax import (
    FREE_TYPES,
    NUMBER_TYPE,
    Alternative,
    Capture,
    Rule,
    RuleCapture,
)
from uncaged_dispatcher.grammar.walking import all_alternatives, captures, variables

ENTITIES = frozenset(
    {
        "Ordinal",
        "Cardinal",
        "CalendarDate",
        "CalendarTime",
        "CalendarTimeRange",
        "CalendarDayRange",
        "Percentage",
    }
)
"""Entities that need no import."""
VALUE_TYPES = frozenset({"string", "number", "boolean", "object", "unknown", "any"})
"""Types of values that an annotation may name without an import."""


def errors_of(definition: Definition) -> Iterator[Problem]:
    """Yield the errors of a rule: missing rules and types, wrong variables."""
    source = definition.scope.source
    for name, at in references(definition):
        if name not in definition.scope.targets:
            yield Problem.at(source, at, f"in <{definition.name}>: there is no rule <{name}>")
    for rule in definition.rules:
        for alternative in all_alternatives(rule.alternatives):
            for at, message in _errors_of(alternative, definition.scope):
                yield Problem.at(source, at, f"in <{definition.name}>: {message}")
        for annotation in rule.types:
            if not _known(annotation.text, definition.scope, VALUE_TYPES):
                message = f"in <{definition.name}>: the type '{annotation.text}' is not imported"
                yield Problem.at(source, annotation.at, message)


def _errors_of(alternative: Alternative, scope: FileNames) -> Iterator[tuple[int, str]]:
    names: set[str] = set()
    for part in captures(alternative):
        if part.variable in names:
            yield part.at, f"the variable '{part.variable}' is captured twice"
        names.add(part.variable)
        if isinstance(part, Capture) and not _known(part.type, scope, FREE_TYPES):
            yield part.type_at, f"there is no type '{part.type}'"
    for used in variables(alternative.value) if alternative.value is not None else ():
        if used.name not in names:
            inside = used.name in {part.variable for part in _inner_captures(alternative)}
            reason = (
                "is captured in a group, and only seen there" if inside else "is not captured here"
            )
            yield used.at, f"the variable '{used.name}' {reason}"


def _inner_captures(alternative: Alternative) -> Iterator[Capture | RuleCapture]:
    for inner in all_alternatives((alternative,)):
        yield from captures(inner)


def _known(name: str, scope: FileNames, others: frozenset[str]) -> bool:
    known = name == NUMBER_TYPE or name in others or name in ENTITIES
    return known or scope.any_type or name in scope.types


def warnings_of(definition: Definition) -> Iterator[Problem]:
    """Yield a warning for each alternative whose value is not clear."""
    for rule in definition.rules:
        for alternative in all_alternatives(rule.alternatives):
            if alternative.value is None and len(list(captures(alternative))) > 1:
                message = "several variables and no value: write one behind '->'"
                yield _warning(definition, alternative.at, message)


def _warning(definition: Definition, at: int, message: str) -> Problem:
    return Problem.at(definition.scope.source, at, f"in <{definition.name}>: {message}")


def unused(names: Names, start: int) -> Iterator[Problem]:
    """Yield a warning for each rule and each import that nothing uses."""
    used_rules: dict[int, set[str]] = {}
    used_types: dict[int, set[str]] = {}
    for definition in names.definitions:
        key = id(definition.scope)
        used_rules.setdefault(key, set()).update(name for name, _ in references(definition))
        used_types.setdefault(key, set()).update(types_of(definition))
    for scope in names.scopes.values():
        for name, at in scope.imported.items():
            if name not in used_rules.get(id(scope), ()):
                yield Problem.at(scope.source, at, f"the imported rule <{name}> is not used")
        for name, at in scope.types.items():
            if name not in used_types.get(id(scope), ()):
                yield Problem.at(scope.source, at, f"the imported type '{name}' is not used")
    roots = [start, *(i for i, other in enumerate(names.definitions) if other.exported)]
    reached = reachable(names, roots)
    for place, definition in enumerate(names.definitions):
        if place not in reached:
            rule: Rule = definition.rules[0]
            yield _warning(definition, rule.at, "the rule is not used")


def reachable(names: Names, roots: list[int]) -> set[int]:
    """Return the places of the definitions that *roots* refer to, directly or not."""
    reached: set[int] = set()
    waiting = list(roots)
    while waiting:
        place = waiting.pop()
        if place not in reached:
            reached.add(place)
            definition = names.definitions[place]
            targets = definition.scope.targets
            waiting.extend(targets[name] for name, _ in references(definition) if name in targets)
    return reached
