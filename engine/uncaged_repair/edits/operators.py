"""Edit operators for operators: comparisons, arithmetic, logic, and the order of operands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from .edit import SourceEdit
from .edit_site import ATOM, SYMBOLS, EditSite
from .facts import MISFIT, number_fit

COMPARISONS: Mapping[str, Mapping[str, float]] = {
    "<": {"<=": 1.0, ">": 0.6, ">=": 0.5, "!=": 0.35, "==": 0.3},
    "<=": {"<": 1.0, ">=": 0.6, ">": 0.5, "==": 0.3, "!=": 0.25},
    ">": {">=": 1.0, "<": 0.6, "<=": 0.5, "!=": 0.35, "==": 0.3},
    ">=": {">": 1.0, "<=": 0.6, "<": 0.5, "==": 0.3, "!=": 0.25},
    "==": {"!=": 0.75, "<=": 0.45, ">=": 0.45, "<": 0.4, ">": 0.4, "in": 0.2, "is": 0.1},
    "!=": {"==": 0.75, "<": 0.45, ">": 0.45, "<=": 0.3, ">=": 0.3, "not in": 0.2},
    "is": {"is not": 0.8, "==": 0.5},
    "is not": {"is": 0.8, "!=": 0.5},
    "in": {"not in": 0.8, "==": 0.2},
    "not in": {"in": 0.8, "!=": 0.2},
}
ARITHMETIC: Mapping[str, Mapping[str, float]] = {
    "+": {"-": 0.8, "*": 0.45, "|": 0.1},
    "-": {"+": 0.8, "*": 0.3, "/": 0.2, "%": 0.15},
    "*": {"+": 0.5, "**": 0.4, "/": 0.4, "//": 0.35, "-": 0.3},
    "/": {"//": 0.7, "*": 0.5, "%": 0.25, "-": 0.15},
    "//": {"/": 0.7, "%": 0.5, "*": 0.35},
    "%": {"//": 0.6, "/": 0.3, "*": 0.2},
    "**": {"*": 0.6, "//": 0.1},
    "<<": {">>": 0.8, "*": 0.1},
    ">>": {"<<": 0.8},
    "&": {"|": 0.8, "^": 0.6, "-": 0.2},
    "|": {"&": 0.8, "^": 0.6, "+": 0.2},
    "^": {"&": 0.7, "|": 0.7, "**": 0.5},
    "@": {"*": 0.5},
}


def comparisons(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield other comparisons, boundaries moved by one, and the two sides exchanged."""
    if not isinstance(node, ast.Compare):
        return
    sides = [node.left, *node.comparators]
    for index, operator in enumerate(node.ops):
        left, right, symbol = sides[index], sides[index + 1], SYMBOLS[type(operator)]
        where = _operator_span(site, left, right, symbol)
        if where is None:
            continue
        text = isinstance(right, ast.Constant) and isinstance(right.value, str | bytes)
        for other, weight in COMPARISONS[symbol].items():
            if not (text and other in ("in", "not in")):
                yield site.edit_span(*where, other, "comparison", weight)
        if (
            len(node.ops) == 1
            and symbol in ("==", "<", "<=", ">", ">=", "!=")
            and isinstance(right, ast.Constant)
            and type(right.value) is int
        ):
            yield from _boundary(site, where[0], site.source.span(right)[1], symbol, right.value)
    if len(sides) == 2 and isinstance(node.ops[0], ast.In | ast.NotIn):
        yield site.edit(
            node,
            f"{site.segment(sides[1])} {SYMBOLS[type(node.ops[0])]} {site.segment(sides[0])}",
            "operand swap",
            0.5,
        )


def arithmetic(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield other operators between two values, the values exchanged, one of them alone, and
    another sign.
    """
    match node:
        case ast.BinOp(left=left, op=operator, right=right) as operation if not _is_format(
            operation
        ):
            symbol = SYMBOLS[type(operator)]
            fits = min(number_fit(site.types(left)), number_fit(site.types(right)))
            where = _operator_span(site, left, right, symbol)
            for other, weight in ARITHMETIC[symbol].items() if where is not None else ():
                if where is not None and not is_neutral(left, other, right):
                    likely = weight if fits > MISFIT else weight * 0.3
                    yield site.edit_span(*where, other, "operator", likely)
            if not (plain_number(left) and plain_number(right)):
                yield from _rearranged(site, operation, symbol)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield site.edit(node, site.segment(operand), "sign removed", 1.0)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            yield site.edit(node, f"-{site.segment(operand)}", "sign reversed", 1.0)
        case _:
            pass


def assignments(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield other operators in `+=` and the like, `=` for `+=`, and `+=` for `=`."""
    match node:
        case ast.AugAssign(target=target, op=operator, value=value):
            symbol = SYMBOLS[type(operator)]
            if (where := _operator_span(site, target, value, symbol + "=")) is not None:
                for other, weight in ARITHMETIC[symbol].items():
                    yield site.edit_span(*where, other + "=", "operator", weight)
                yield site.edit_span(*where, "=", "operator", 0.4)
        case ast.Assign(
            targets=[ast.Name() | ast.Subscript() | ast.Attribute() as target], value=value
        ) if site.function is not None:
            if (where := _operator_span(site, target, value, "=")) is not None:
                for symbol, weight in (("+", 1.0), ("-", 0.5), ("*", 0.25), ("|", 0.15)):
                    if not is_neutral(None, symbol, value):
                        yield site.edit_span(*where, symbol + "=", "update for assignment", weight)


def _rearranged(site: EditSite, node: ast.BinOp, symbol: str) -> Iterator[SourceEdit]:
    # an exchange that changes nothing
    if not (symbol in ("+", "*", "&", "|", "^") and plain_number(node.left, node.right)):
        swapped = (
            f"{_with_parentheses(site, node.right)} {symbol} {_with_parentheses(site, node.left)}"
        )
        yield site.edit(node, swapped, "operand swap", 0.6 if symbol == "*" else 1.0)
    for operand in (node.left, node.right):
        start, end = (
            site.wrapped_span(node) if isinstance(operand, ATOM) else site.source.span(node)
        )
        yield site.edit_span(
            start, end, _with_parentheses(site, operand), "operand alone", 1.0, line=node.lineno
        )


def logic(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield `and` for `or`, conditions negated or no longer negated, and one condition dropped."""
    match node:
        case ast.BoolOp(op=operator, values=values):
            symbol = SYMBOLS[type(operator)]
            gaps = [_operator_span(site, left, right, symbol) for left, right in pairwise(values)]
            for where in gaps:
                if where is not None:
                    yield site.edit_span(*where, "or" if symbol == "and" else "and", "logic", 1.0)
            for index in range(len(values)):
                kept = f" {symbol} ".join(
                    _with_parentheses(site, value) for at, value in enumerate(values) if at != index
                )
                yield site.edit(node, kept, "condition dropped", 1.0, "weaken")
            for value in values:
                yield from _negated(site, value, 0.7)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield site.edit(node, site.segment(operand), "negation removed", 1.0)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield from _negated(site, test, 1.0)
        case ast.comprehension(ifs=conditions):
            for condition in conditions:
                yield from _negated(site, condition, 1.0)
        case ast.Return(value=ast.expr() as value) if "bool" in site.types(
            value
        ) and not isinstance(value, ast.Constant):
            yield from _negated(site, value, 0.8)
    if isinstance(node, ast.IfExp):
        yield site.edit(
            node,
            f"{_with_parentheses(site, node.orelse)} if {site.segment(node.test)} else {_with_parentheses(site, node.body)}",
            "branch swap",
            1.0,
        )


def plain_number(*nodes: ast.AST) -> bool:
    """Return whether one of *nodes* is a literal number."""
    return any(
        isinstance(node, ast.Constant) and type(node.value) in (int, float) for node in nodes
    )


def is_neutral(left: ast.AST | None, symbol: str, right: ast.AST | None) -> bool:
    """Return whether the operation is one of its operands, such as `x - 0` and `1 * x`. Another
    edit operator yields that operand alone.
    """
    neutral = {
        "+": 0,
        "-": 0,
        "|": 0,
        "^": 0,
        "<<": 0,
        ">>": 0,
        "*": 1,
        "/": 1,
        "//": 1,
        "**": 1,
    }.get(symbol)
    sides = [right, left] if symbol in ("+", "*", "|", "^") else [right]
    return neutral is not None and any(
        isinstance(side, ast.Constant) and side.value == neutral and side.value is not True
        for side in sides
    )


def _is_format(node: ast.BinOp) -> bool:
    """Return whether *node* formats a literal text with `%`."""
    literal = isinstance(node.left, ast.JoinedStr) or (
        isinstance(node.left, ast.Constant) and isinstance(node.left.value, str | bytes)
    )
    return literal and isinstance(node.op, ast.Mod)


def _boundary(
    site: EditSite, start: int, end: int, symbol: str, value: int
) -> Iterator[SourceEdit]:
    pairs = {
        "==": (
            ("<=", value + 1),
            ("<=", value),
            ("<", value + 1),
            (">=", value + 1),
            (">", value + 1),
        ),
        "!=": ((">", value + 1), ("<", value - 1)),
        "<": (("<=", value + 1), ("<=", value - 1)),
        "<=": (("<", value - 1), ("==", value + 1)),
        ">": ((">=", value - 1), (">=", value + 1)),
        ">=": ((">", value + 1), ("==", value - 1)),
    }
    for rank, (other, moved) in enumerate(pairs[symbol]):
        yield site.edit_span(start, end, f"{other} {moved}", "boundary", 1 / (1 + 0.3 * rank))


def _negated(site: EditSite, condition: ast.expr, weight: float) -> Iterator[SourceEdit]:
    """Yield the negation of *condition*. A comparison that has an opposite is left to
    `comparisons`.
    """
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        return
    text = site.segment(condition)
    if isinstance(condition, ast.Compare | ast.BoolOp | ast.IfExp | ast.NamedExpr):
        yield site.edit(condition, f"not ({text})", "negation", weight * 0.5)
    else:
        yield site.edit(condition, f"not {text}", "negation", weight)


def _with_parentheses(site: EditSite, node: ast.expr) -> str:
    """Return *node*'s text with the parentheses that it has in the file."""
    return site.source.text(*site.wrapped_span(node))


def _operator_span(
    site: EditSite, left: ast.AST, right: ast.AST, symbol: str
) -> tuple[int, int] | None:
    """Return the span of the operator *symbol* between two operands; None if it is not found
    once.
    """
    start, end = site.source.span(left)[1], site.source.span(right)[0]
    pattern = r"\s+".join(re.escape(word) for word in symbol.split())
    gap = re.sub(
        r"#[^\n\r]*",
        lambda comment: " " * len(comment.group().encode()),
        site.source.text(start, end),
    )
    found = list(re.finditer(pattern, gap))
    if len(found) != 1:
        return None
    return start + len(gap[: found[0].start()].encode()), start + len(
        gap[: found[0].end()].encode()
    )
