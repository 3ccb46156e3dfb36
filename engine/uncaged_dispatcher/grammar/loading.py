"""Checked and linked rules of a grammar and of the files that it imports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from uncaged_bundles.records import replace

from uncaged_dispatcher.grammar.checks import errors_of, reachable, unused, warnings_of
from uncaged_dispatcher.grammar.cycles import loops, without_value
from uncaged_dispatcher.grammar.files import read_files
from uncaged_dispatcher.grammar.inference import value_errors
from uncaged_dispatcher.grammar.limits import MAX_PROBLEMS
from uncaged_dispatcher.grammar.linking import linked_alternatives
from uncaged_dispatcher.grammar.problems import GrammarError, Problem
from uncaged_dispatcher.grammar.scopes import Names
from uncaged_dispatcher.grammar.syntax import Capture, LinkedRule, LinkedRules, RuleCapture
from uncaged_dispatcher.grammar.walking import all_alternatives, all_parts, captures

START = "Start"


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
    read = read_files(text, name, files or {}, value_expressions=value_expressions)
    names = Names(read)
    main = next(iter(names.scopes.values()))
    start = main.own.get(START)
    if start is None:
        _refuse([*names.problems, Problem.at(main.source, 0, f"there is no rule <{START}>")])
    rules = [
        LinkedRule(
            definition.name,
            tuple(linked_alternatives(definition)),
            definition.scope.targets,
            definition.scope.source,
        )
        for definition in names.definitions
    ]
    problems = list(names.problems)
    for definition in names.definitions:
        problems.extend(errors_of(definition))
    problems.extend(_loop_errors(rules, start))
    problems.extend(_value_errors(rules, start, start_value_required=start_value_required))
    problems.extend(value_errors(rules))
    if problems:
        _refuse(problems)
    warnings = [problem for found in names.definitions for problem in warnings_of(found)]
    warnings.extend(unused(names, start))
    return Loaded(
        _reached(rules, reachable(names, [start]), start), tuple(_limited(warnings, "warnings"))
    )


def _refuse(problems: Sequence[Problem]) -> NoReturn:
    raise GrammarError(_limited(problems, "errors"))


def _limited(problems: Sequence[Problem], what: str) -> list[Problem]:
    """Return the first problems, up to the limit; the last one counts the rest."""
    listed = list(problems[:MAX_PROBLEMS])
    if len(problems) > MAX_PROBLEMS:
        rest = f"{listed[-1].message}; and {len(problems) - MAX_PROBLEMS} more {what}"
        listed[-1] = replace(listed[-1], message=rest)
    return listed


def _loop_errors(rules: Sequence[LinkedRule], start: int) -> Iterator[Problem]:
    for place, at, name in loops(rules, start):
        rule = rules[place]
        message = f"in <{rule.name}>: <{name}> comes back here before any text is read, without end"
        yield Problem.at(rule.source, at, message)


def _value_errors(
    rules: Sequence[LinkedRule], start: int, *, start_value_required: bool
) -> Iterator[Problem]:
    """Yield an error where a value is needed and a rule has an alternative without one."""
    valueless = without_value(rules)
    if start_value_required and ("rule", start) in valueless:
        source = rules[start].source
        yield Problem.at(
            source, 0, f"<{START}> has an alternative without a value: write one behind '->'"
        )
    for rule in rules:
        for alternative in all_alternatives(rule.alternatives):
            for part in captures(alternative):
                if (
                    isinstance(part, RuleCapture)
                    and ("rule", rule.targets.get(part.rule)) in valueless
                ):
                    message = f"in <{rule.name}>: <{part.rule}> has no value for '{part.variable}'"
                    yield Problem.at(rule.source, part.rule_at, message)


def _reached(rules: Sequence[LinkedRule], reached: set[int], start: int) -> LinkedRules:
    """Return the rules that the start reaches, with the places that they have among themselves."""
    places = {old: new for new, old in enumerate(sorted(reached))}
    targets: dict[int, dict[str, int]] = {}
    kept: list[LinkedRule] = []
    entities: set[str] = set()
    for old in places:
        rule = rules[old]
        if id(rule.targets) not in targets:
            targets[id(rule.targets)] = {
                name: places[place] for name, place in rule.targets.items() if place in places
            }
        kept.append(replace(rule, targets=targets[id(rule.targets)]))
        for part in all_parts(rule.alternatives):
            if isinstance(part, Capture) and not part.free and not part.number:
                entities.add(part.type)
    return LinkedRules(tuple(kept), places[start], frozenset(entities))
