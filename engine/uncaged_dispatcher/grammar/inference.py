"""Kinds of values that a grammar's expressions can have, and errors in expressions that can only
fail.

A kind that is not known, such as that of a property, fits everywhere: evaluation checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import assert_never

from uncaged_dispatcher.grammar.kinds import (
    COMPARISONS,
    arguments_problem,
    condition_problem,
    kind_of,
    member_problem,
    method_problem,
    operand_problem,
    operands_problem,
    spread_problem,
    text_problem,
)
from uncaged_dispatcher.grammar.methods import METHODS
from uncaged_dispatcher.grammar.problems import Problem
from uncaged_dispatcher.grammar.syntax import (
    Alternative,
    ArrayValue,
    Binary,
    Capture,
    Constant,
    Element,
    Expression,
    Group,
    LinkedRule,
    Literal,
    Member,
    MethodCall,
    ObjectValue,
    Part,
    PartValue,
    Repeat,
    RuleCapture,
    RuleRef,
    Spread,
    Template,
    Ternary,
    Unary,
    Variable,
)
from uncaged_dispatcher.grammar.walking import all_alternatives, all_parts, captures

Kinds = frozenset[str]
ANY: Kinds = frozenset()
"""Kinds that are not known."""
ABSENT: Kinds = frozenset({"undefined"})
TEXT: Kinds = frozenset({"string"})
NUMBER: Kinds = frozenset({"number"})
TRUTH: Kinds = frozenset({"boolean"})


def value_errors(rules: Sequence[LinkedRule]) -> Iterator[Problem]:
    """Yield an error for each operator, method and spread that no value of its operands fits."""
    known: dict[int, Kinds] = {}
    for place in _inner_first(rules):
        rule = rules[place]
        kinds: list[Kinds] = []
        for alternative in all_alternatives(rule.alternatives):
            inference = _Inference(alternative, rule, known)
            if alternative.value is not None:
                inference.kinds(alternative.value)
            for at, message in inference.errors:
                yield Problem.at(rule.source, at, f"in <{rule.name}>: {message}")
        for alternative in rule.alternatives:
            kinds.append(_Inference(alternative, rule, known).of_alternative())
        known[place] = _union(kinds)


def _inner_first(rules: Sequence[LinkedRule]) -> Iterator[int]:
    """Yield the places of the rules, each after those that it refers to where it can."""
    seen: set[int] = set()
    for root in range(len(rules)):
        stack = [] if root in seen else [(root, _targets(rules[root]))]
        seen.add(root)
        while stack:
            place, targets = stack[-1]
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, _targets(rules[target])))
                    break
            else:
                stack.pop()
                yield place


def _targets(rule: LinkedRule) -> Iterator[int]:
    for part in all_parts(rule.alternatives):
        if isinstance(part, RuleRef | RuleCapture) and part.rule in rule.targets:
            yield rule.targets[part.rule]


def _union(kinds: Iterable[Kinds]) -> Kinds:
    """Return all kinds together; one that is not known makes all unknown."""
    together: set[str] = set()
    for some in kinds:
        if not some:
            return ANY
        together |= some
    return frozenset(together)


class _Inference:
    """Kinds of the expressions of one alternative."""

    def __init__(self, alternative: Alternative, rule: LinkedRule, known: dict[int, Kinds]) -> None:
        self._alternative = alternative
        self._rule = rule
        self._known = known
        self._variables = {part.variable: self._capture(part) for part in captures(alternative)}
        self.errors: list[tuple[int, str]] = []

    def of_alternative(self) -> Kinds:
        """Return the kinds of the alternative's value."""
        return ANY if self._alternative.value is None else self.kinds(self._alternative.value)

    def _capture(self, part: Capture | RuleCapture) -> Kinds:
        if isinstance(part, Capture):
            kinds = TEXT if part.free else NUMBER if part.number else ANY
            return kinds | ABSENT if part.optional and kinds else kinds
        kinds = self._of_rule(part.rule)
        return kinds | ABSENT if part.optional and kinds else kinds

    def _of_rule(self, name: str) -> Kinds:
        return self._known.get(self._rule.targets.get(name, -1), ANY)

    def _of_part(self, part: Part) -> Kinds:
        match part:
            case Literal():
                return TEXT
            case RuleRef(name):
                return self._of_rule(name)
            case Group():
                inner = [
                    _Inference(alternative, self._rule, self._known).of_alternative()
                    for alternative in part.alternatives
                ]
                skipped = part.repeat in (Repeat.OPTIONAL, Repeat.ANY)
                return _union([*inner, ABSENT] if skipped else inner)
            case _:
                return self._capture(part)

    def _refuse(self, at: int, problems: Iterable[str]) -> None:
        """Note an error if there is a problem with every combination of kinds."""
        listed = list(problems)
        if listed and all(listed):
            self.errors.append((at, listed[0]))

    def _refuse_kinds(self, at: int, kinds: Kinds, problem: Callable[[str], str]) -> None:
        self._refuse(at, [problem(kind) for kind in sorted(kinds - ABSENT)])

    def kinds(self, expression: Expression) -> Kinds:
        """Return the kinds that an expression can have; note the errors in it."""
        match expression:
            case Constant(value):
                return frozenset({kind_of(value)})
            case Variable(name):
                return self._variables.get(name, ANY)
            case PartValue(index):
                return self._of_part(self._alternative.parts[index])
            case ObjectValue() | ArrayValue() | Template():
                return self._made(expression)
            case Unary():
                return self._unary(expression)
            case Binary():
                return self._binary(expression)
            case Ternary(condition, then, otherwise):
                self._condition(condition)
                return _union((self.kinds(then), self.kinds(otherwise)))
            case Member() | Element() | MethodCall():
                return self._postfix(expression)
            case _:
                assert_never(expression)

    def _made(self, expression: ObjectValue | ArrayValue | Template) -> Kinds:
        match expression:
            case ObjectValue(entries):
                for entry in entries:
                    kinds = self.kinds(entry.value)
                    if isinstance(entry, Spread):
                        self._refuse_kinds(
                            entry.at, kinds, lambda kind: spread_problem(kind, "object")
                        )
                return frozenset({"object"})
            case ArrayValue(items):
                self._items(items)
                return frozenset({"array"})
            case Template(_, values):
                for value in values:
                    self._refuse_kinds(value.at, self.kinds(value), text_problem)
                return TEXT
            case _:
                assert_never(expression)

    def _items(self, items: Iterable[Expression | Spread]) -> list[Kinds]:
        """Return the kinds of the items that are no spreads."""
        found: list[Kinds] = []
        for item in items:
            if isinstance(item, Spread):
                kinds = self.kinds(item.value)
                self._refuse_kinds(item.at, kinds, lambda kind: spread_problem(kind, "array"))
            else:
                found.append(self.kinds(item))
        return found

    def _condition(self, expression: Expression) -> None:
        self._refuse_kinds(expression.at, self.kinds(expression), condition_problem)

    def _unary(self, expression: Unary) -> Kinds:
        if expression.operator == "!":
            self._condition(expression.operand)
            return TRUTH
        kinds = self.kinds(expression.operand)
        if expression.operator == "typeof":
            return TEXT
        self._refuse_kinds(expression.at, kinds, lambda kind: operand_problem("-", kind))
        return NUMBER | (kinds & ABSENT)

    def _binary(self, expression: Binary) -> Kinds:
        operator = expression.operator
        if operator in ("&&", "||"):
            self._condition(expression.left)
            self._condition(expression.right)
            return TRUTH
        left, right = self.kinds(expression.left), self.kinds(expression.right)
        if operator == "??":
            rest = left - {"null", "undefined"}
            return _union((rest, right)) if rest else right if left else ANY
        if operator in ("===", "!=="):
            return TRUTH
        pairs = [(a, b) for a in sorted(left - ABSENT) for b in sorted(right - ABSENT)]
        self._refuse(expression.at, [operands_problem(operator, a, b) for a, b in pairs])
        absent = (left | right) & ABSENT
        if operator in COMPARISONS:
            return TRUTH | absent
        if operator != "+":
            return NUMBER | absent
        fitting = {a for a, b in pairs if not operands_problem(operator, a, b)}
        return frozenset(fitting | absent) if fitting else ANY

    def _postfix(self, expression: Member | Element | MethodCall) -> Kinds:
        kinds = self.kinds(expression.object)
        if expression.optional:
            kinds -= {"null"}
        match expression:
            case Member(_, name):
                self._refuse_kinds(expression.at, kinds, lambda kind: member_problem(kind, name))
                sized = bool(kinds) and kinds <= {"string", "array"}
                return NUMBER if name == "length" and sized else ANY
            case Element(_, index):
                self.kinds(index)
                return ANY
            case MethodCall():
                return self._call(expression, kinds)

    def _call(self, call: MethodCall, kinds: Kinds) -> Kinds:
        arguments = self._items(call.arguments)
        self._refuse_kinds(call.at, kinds, lambda kind: method_problem(kind, call.name))
        methods = [METHODS[k][call.name] for k in sorted(kinds) if call.name in METHODS.get(k, {})]
        if any(isinstance(argument, Spread) for argument in call.arguments):
            return ANY
        single = [next(iter(some)) if len(some) == 1 else "" for some in arguments]
        known = ["" if kind == "undefined" else kind for kind in single]
        self._refuse(call.at, [arguments_problem(m, call.name, known) for m in methods])
        results = {method.result for method in methods}
        return frozenset(results) if results and "" not in results and kinds <= {*METHODS} else ANY
