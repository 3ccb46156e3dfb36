"""Values of readings: evaluation of value expressions, with strict types and no coercion.

An optional capture that was not taken is absent: the result of an operator or a method is absent,
then, and a condition false; it is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, assert_never

from uncaged_dispatcher.grammar.kinds import (
    COMPARISONS,
    KINDS,
    arguments_problem,
    condition_problem,
    kind_of,
    member_problem,
    method_problem,
    operand_problem,
    operands_problem,
    spread_problem,
)
from uncaged_dispatcher.grammar.limits import MAX_TEXT, MAX_VALUE_DEPTH, MAX_VALUE_ITEMS
from uncaged_dispatcher.grammar.methods import METHODS, Method, MethodError, same, scalar_text
from uncaged_dispatcher.grammar.numbers import calculate, is_number
from uncaged_dispatcher.grammar.syntax import (
    UNDEFINED,
    ArrayValue,
    Binary,
    Constant,
    Element,
    Expression,
    Member,
    MethodCall,
    ObjectValue,
    PartValue,
    Property,
    Spread,
    Template,
    Ternary,
    Unary,
    Undefined,
    Variable,
)

Ordered = TypeVar("Ordered", str, float)
PARTS_PER_STEP = 6
"""Parts of an expression that are evaluated in a step of a search."""
FREE_PARTS = 32
"""Parts of an expression, together, that belong to the step in which its pattern ends."""
ITEMS_PER_PART, CHARACTERS_PER_PART = 4, 128
"""Items of a list, and characters of a text, that cost as much as a part of an expression."""
COMPARED_PARTS = 400
"""Cost of comparing lists or objects, whose items at all levels are limited."""


class EvaluationError(Exception):
    """An operand of a kind that its operator does not take; ``at`` is the place in the file."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def evaluate(
    expression: Expression,
    variables: Mapping[str, object],
    parts: Mapping[int, object] | None = None,
    work: Callable[[int], None] = lambda _steps: None,
) -> object:
    """Return the value of an expression of a linked alternative.

    Args:
        expression: the ``value`` of the alternative.
        variables: the value of each capture; one that was not taken is missing. Texts are `str`,
            numbers `int` where they are whole and `float` otherwise.
        parts: the value of the alternative's part at an index, for `PartValue`.
        work: counts the steps that a long evaluation takes; it may raise.
    Returns:
        A value of JSON's types, or `UNDEFINED`. A property without a value is left out, and in a
        list it is None.
    Raises:
        EvaluationError: an operator, a method or a spread got a value of another kind, or the
            value is too large.
    """
    evaluation = _Evaluation(variables, parts or {}, work)
    value = evaluation.value(expression)
    if isinstance(value, dict | list) and not isinstance(expression, Variable | PartValue):
        evaluation.spend(_items_of(value, expression.at) // ITEMS_PER_PART)
    return value


def _items_of(value: object, at: int) -> int:
    """Return the number of items of a value at all levels.

    Raises:
        EvaluationError: it has too many items or levels to be written out.
    """
    level, items = [value], 0
    for _ in range(MAX_VALUE_DEPTH):
        inner: list[object] = []
        for container in level:
            if isinstance(container, dict | list):
                inner.extend(container.values() if isinstance(container, dict) else container)
        items += len(inner)
        if not inner:
            return items
        if items > MAX_VALUE_ITEMS:
            raise EvaluationError(at, f"the value has more than {MAX_VALUE_ITEMS:,} items")
        level = inner
    raise EvaluationError(at, f"the value is more than {MAX_VALUE_DEPTH} levels deep")


class _Evaluation:
    """One evaluation; its recursion is as deep as the expression, which the parser limits."""

    def __init__(
        self,
        variables: Mapping[str, object],
        parts: Mapping[int, object],
        work: Callable[[int], None],
    ) -> None:
        self._variables = variables
        self._parts = parts
        self._work = work
        self._left = FREE_PARTS

    def spend(self, parts: int) -> None:
        """Count work that costs as much as evaluating some parts of an expression."""
        self._left -= parts
        if self._left < 0:
            steps = 1 - self._left // PARTS_PER_STEP
            self._left += steps * PARTS_PER_STEP
            self._work(steps)

    def _spend_on(self, *values: object) -> None:
        """Count the work of reading or making values."""
        for value in values:
            if isinstance(value, str):
                self.spend(len(value) // CHARACTERS_PER_PART)
            elif isinstance(value, list | dict):
                # an object's items cost twice as much
                self.spend((1 + isinstance(value, dict)) * len(value) // ITEMS_PER_PART)

    def value(self, expression: Expression) -> object:
        self.spend(1)
        match expression:
            case Constant(value):
                return value
            case Variable(name):
                return self._variables.get(name, UNDEFINED)
            case PartValue(index):
                return self._parts.get(index, UNDEFINED)
            case ObjectValue():
                return dict(self._properties(expression))
            case ArrayValue(items):
                values = self._items(items)
                return [None if value is UNDEFINED else value for value in values]
            case Template():
                return self._template(expression)
            case Unary():
                return self._unary(expression)
            case Binary():
                return self._binary(expression)
            case Ternary(condition, then, otherwise):
                return self.value(then if self._truth(condition) else otherwise)
            case Member() | Element() | MethodCall():
                return self._postfix(expression)
            case _:
                assert_never(expression)

    def _properties(self, expression: ObjectValue) -> Iterator[tuple[str, object]]:
        for entry in expression.entries:
            value = self.value(entry.value)
            if isinstance(entry, Property):
                if value is not UNDEFINED:
                    yield entry.name, value
            elif isinstance(value, dict):
                self._spend_on(value)
                yield from value.items()
            elif value is not UNDEFINED and value is not None:
                raise EvaluationError(entry.at, spread_problem(kind_of(value), "object"))

    def _items(self, items: tuple[Expression | Spread, ...]) -> list[object]:
        values: list[object] = []
        for item in items:
            if not isinstance(item, Spread):
                values.append(self.value(item))
                continue
            value = self.value(item.value)
            if not isinstance(value, list | Undefined):
                raise EvaluationError(item.at, spread_problem(kind_of(value), "array"))
            self._spend_on(value)
            values.extend(value if isinstance(value, list) else ())
            if len(values) > MAX_VALUE_ITEMS:
                raise EvaluationError(item.at, f"a list has at most {MAX_VALUE_ITEMS:,} items")
        return values

    def _template(self, expression: Template) -> str:
        pieces = [expression.texts[0]]
        for inner, text in zip(expression.values, expression.texts[1:], strict=True):
            value = self.value(inner)
            try:
                pieces += ("" if value is UNDEFINED else scalar_text(value), text)
            except MethodError as error:
                raise EvaluationError(inner.at, str(error)) from None
        self._spend_on(*pieces)
        return _limited("".join(pieces), expression.at)

    def _unary(self, expression: Unary) -> object:
        operand = expression.operand
        match expression.operator:
            case "!":
                return not self._truth(operand)
            case "typeof":
                kind = kind_of(self.value(operand))
                return "object" if kind in ("null", "array") else kind
            case _:
                value = self.value(operand)
                if value is UNDEFINED:
                    return UNDEFINED
                if not is_number(value):
                    raise EvaluationError(expression.at, operand_problem("-", kind_of(value)))
                return -value

    def _truth(self, expression: Expression) -> bool:
        """Return a condition: true or false; what is absent is false."""
        value = self.value(expression)
        if not isinstance(value, bool | Undefined):
            raise EvaluationError(expression.at, condition_problem(kind_of(value)))
        return value is True

    def _binary(self, expression: Binary) -> object:
        operator, left, right = expression.operator, expression.left, expression.right
        match operator:
            case "&&":
                return self._truth(left) and self._truth(right)
            case "||":
                return self._truth(left) or self._truth(right)
            case "??":
                value = self.value(left)
                return self.value(right) if value is None or value is UNDEFINED else value
            case "===":
                return self._same(left, right)
            case "!==":
                return not self._same(left, right)
            case _:
                operands = self.value(left), self.value(right)
                self._spend_on(*operands)
                return _combined(operator, *operands, expression.at)

    def _same(self, left: Expression, right: Expression) -> bool:
        operands = self.value(left), self.value(right)
        self._spend_on(*operands)
        if all(isinstance(operand, list | dict) for operand in operands):
            self.spend(COMPARED_PARTS)
        return same(*operands)

    def _postfix(self, expression: Member | Element | MethodCall) -> object:
        target = self.value(expression.object)
        if target is UNDEFINED or (target is None and expression.optional):
            return UNDEFINED
        match expression:
            case Member(_, name):
                return _member(target, name, expression.at)
            case Element(_, index):
                return _element(target, self.value(index), expression.at)
            case MethodCall(_, name, arguments):
                method = METHODS.get(kind_of(target), {}).get(name)
                if method is None:
                    raise EvaluationError(expression.at, method_problem(kind_of(target), name))
                values = self._items(arguments)
                self._spend_on(target, *values)
                if any(isinstance(value, list | dict) for value in values):
                    self.spend(COMPARED_PARTS)
                result = _called(method, name, target, values, expression.at)
                self._spend_on(result)
                return result


def _combined(operator: str, left: object, right: object, at: int) -> object:
    """Return the result of an arithmetic or an ordering operator."""
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    if (
        isinstance(left, str)
        and isinstance(right, str)
        and (operator in COMPARISONS or operator == "+")
    ):
        return _ordered(operator, left, right) if operator != "+" else _limited(left + right, at)
    if is_number(left) and is_number(right):
        if operator in COMPARISONS:
            return _ordered(operator, left, right)
        return calculate(operator, left, right)
    raise EvaluationError(at, operands_problem(operator, kind_of(left), kind_of(right)))


def _ordered(operator: str, left: Ordered, right: Ordered) -> bool:
    match operator:
        case "<":
            return left < right
        case ">":
            return left > right
        case "<=":
            return left <= right
        case _:
            return left >= right


def _limited(text: str, at: int) -> str:
    if len(text) > MAX_TEXT:
        raise EvaluationError(at, f"the text has more than {MAX_TEXT:,} characters")
    return text


def _member(target: object, name: str, at: int) -> object:
    if isinstance(target, dict):
        return target.get(name, UNDEFINED)
    if isinstance(target, str | list) and name == "length":
        return len(target)
    raise EvaluationError(at, member_problem(kind_of(target), name))


def _element(target: object, index: object, at: int) -> object:
    if index is UNDEFINED:
        return UNDEFINED
    if isinstance(target, dict) and isinstance(index, str):
        return target.get(index, UNDEFINED)
    if isinstance(target, str | list) and is_number(index):
        known = isinstance(index, int) and 0 <= index < len(target)
        return target[int(index)] if known else UNDEFINED
    raise EvaluationError(at, f"{KINDS[kind_of(target)]} has no element at {KINDS[kind_of(index)]}")


def _called(method: Method, name: str, target: object, arguments: list[object], at: int) -> object:
    if UNDEFINED in arguments:
        return UNDEFINED
    problem = arguments_problem(method, name, [kind_of(argument) for argument in arguments])
    if problem:
        raise EvaluationError(at, problem)
    try:
        return method.call(target, *arguments)
    except MethodError as error:
        raise EvaluationError(at, f"{name}: {error}") from None
