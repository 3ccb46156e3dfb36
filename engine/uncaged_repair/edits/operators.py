"""Wrong operators: comparisons, arithmetic, logic, and the order of their operands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from .edit import Edit
from .facts import numeric
from .scene import ATOM, SYMBOLS, Scene

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


def comparisons(scene: Scene, node: ast.AST) -> Iterator[Edit]:
    """Another comparison; the boundary moved by one where a number is compared; the two sides
    exchanged.
    """
    if not isinstance(node, ast.Compare):
        return
    sides = [node.left, *node.comparators]
    for index, operator in enumerate(node.ops):
        left, right, symbol = sides[index], sides[index + 1], SYMBOLS[type(operator)]
        where = _find(scene, left, right, symbol)
        if where is None:
            continue
        for other, weight in COMPARISONS[symbol].items():
            yield scene.edit_span(*where, other, "comparison", weight)
        if (
            len(node.ops) == 1
            and symbol in ("==", "<", "<=", ">", ">=", "!=")
            and isinstance(right, ast.Constant)
            and type(right.value) is int
        ):
            yield from _boundary(scene, where[0], scene.source.span(right)[1], symbol, right.value)
    if len(sides) == 2 and isinstance(node.ops[0], ast.In | ast.NotIn):
        yield scene.edit(
            node,
            f"{scene.segment(sides[1])} {SYMBOLS[type(node.ops[0])]} {scene.segment(sides[0])}",
            "operand swap",
            0.3,
        )


def arithmetic(scene: Scene, node: ast.AST) -> Iterator[Edit]:
    """Another operator between two values; the values exchanged; one of them alone; a sign
    turned.
    """
    match node:
        case ast.BinOp(left=left, op=operator, right=right) as operation if scene.types(left) != {
            "str"
        } or not isinstance(operator, ast.Mod):
            symbol = SYMBOLS[type(operator)]
            plain = numeric(scene.types(left)) and numeric(scene.types(right))
            where = _find(scene, left, right, symbol)
            for other, weight in ARITHMETIC[symbol].items() if where is not None else ():
                if where is not None and not idle(left, other, right):
                    yield scene.edit_span(
                        *where, other, "operator", weight if plain else weight * 0.3
                    )
            if not (plain_number(left) and plain_number(right)):
                yield from _rearranged(scene, operation, symbol)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield scene.edit(node, scene.segment(operand), "sign", 0.5)
        case ast.Name(ctx=ast.Load()) | ast.Call() if (
            scene.types(node) and numeric(scene.types(node)) and "bool" not in scene.types(node)
        ):
            yield scene.edit(
                node, scene.composite(node, f"-{scene.segment(node)}", "sign"), "sign", 0.15
            )


def assignments(scene: Scene, node: ast.AST) -> Iterator[Edit]:
    """Another operator in `+=` and the like; `=` for `+=`, `+=` for `=`."""
    match node:
        case ast.AugAssign(target=target, op=operator, value=value):
            symbol = SYMBOLS[type(operator)]
            if (where := _find(scene, target, value, symbol + "=")) is not None:
                for other, weight in ARITHMETIC[symbol].items():
                    yield scene.edit_span(*where, other + "=", "operator", weight)
                yield scene.edit_span(*where, "=", "operator", 0.4)
        case ast.Assign(
            targets=[ast.Name() | ast.Subscript() | ast.Attribute() as target], value=value
        ) if scene.function is not None:
            if (where := _find(scene, target, value, "=")) is not None:
                for symbol, weight in (("+", 0.4), ("-", 0.2), ("*", 0.1), ("|", 0.05)):
                    if not idle(None, symbol, value):
                        yield scene.edit_span(*where, symbol + "=", "operator", weight)


def _rearranged(scene: Scene, node: ast.BinOp, symbol: str) -> Iterator[Edit]:
    # that would change nothing
    if not (symbol in ("+", "*", "&", "|", "^") and plain_number(node.left, node.right)):
        swapped = f"{_beside(scene, node.right)} {symbol} {_beside(scene, node.left)}"
        yield scene.edit(node, swapped, "operand swap", 0.35 if symbol == "*" else 0.6)
    for operand in (node.left, node.right):
        start, end = (
            scene.wrapped_span(node) if isinstance(operand, ATOM) else scene.source.span(node)
        )
        yield scene.edit_span(
            start, end, _beside(scene, operand), "operand alone", 0.3, line=node.lineno
        )


def logic(scene: Scene, node: ast.AST) -> Iterator[Edit]:
    """`and` for `or`; a condition negated, or no longer; one condition dropped."""
    match node:
        case ast.BoolOp(op=operator, values=values):
            symbol = SYMBOLS[type(operator)]
            gaps = [_find(scene, left, right, symbol) for left, right in pairwise(values)]
            for where in gaps:
                if where is not None:
                    yield scene.edit_span(*where, "or" if symbol == "and" else "and", "logic", 0.8)
            for index in range(len(values)):
                kept = f" {symbol} ".join(
                    _beside(scene, value) for at, value in enumerate(values) if at != index
                )
                yield scene.edit(node, kept, "condition dropped", 0.3, "weaken")
            for value in values:
                yield from _negated(scene, value, 0.5)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield scene.edit(node, scene.segment(operand), "negation", 0.8)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield from _negated(scene, test, 0.7)
        case ast.comprehension(ifs=conditions):
            for condition in conditions:
                yield from _negated(scene, condition, 0.7)
        case ast.Return(value=ast.expr() as value) if "bool" in scene.types(
            value
        ) and not isinstance(value, ast.Constant):
            yield from _negated(scene, value, 0.6)
    if isinstance(node, ast.IfExp):
        yield scene.edit(
            node,
            f"{_beside(scene, node.orelse)} if {scene.segment(node.test)} else {_beside(scene, node.body)}",
            "branch swap",
            0.5,
        )


def plain_number(*nodes: ast.AST) -> bool:
    """Say whether one of *nodes* is a number as written."""
    return any(
        isinstance(node, ast.Constant) and type(node.value) in (int, float) for node in nodes
    )


def idle(left: ast.AST | None, symbol: str, right: ast.AST | None) -> bool:
    """Say whether the operation is one of its operands, such as `x - 0` and `1 * x`: another
    generator writes that operand alone.
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


def _boundary(scene: Scene, start: int, end: int, symbol: str, value: int) -> Iterator[Edit]:
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
        yield scene.edit_span(start, end, f"{other} {moved}", "boundary", 0.35 / (1 + 0.3 * rank))


def _negated(scene: Scene, condition: ast.expr, weight: float) -> Iterator[Edit]:
    """Negate *condition* as a person would write it; a comparison that has an opposite is left to
    `comparisons`.
    """
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        return
    text = scene.segment(condition)
    if isinstance(condition, ast.Compare | ast.BoolOp | ast.IfExp | ast.NamedExpr):
        yield scene.edit(condition, f"not ({text})", "negation", weight * 0.5)
    else:
        yield scene.edit(condition, f"not {text}", "negation", weight)


def _beside(scene: Scene, node: ast.expr) -> str:
    """Return *node*'s text with the parentheses that it has in the file."""
    return scene.source.text(*scene.wrapped_span(node))


def _find(scene: Scene, left: ast.AST, right: ast.AST, symbol: str) -> tuple[int, int] | None:
    """Return the span of the operator *symbol* between two operands."""
    start, end = scene.source.span(left)[1], scene.source.span(right)[0]
    pattern = r"\s+".join(re.escape(word) for word in symbol.split())
    gap = re.sub(
        r"#[^\n\r]*",
        lambda comment: " " * len(comment.group().encode()),
        scene.source.text(start, end),
    )
    found = list(re.finditer(pattern, gap))
    if len(found) != 1:
        return None
    return start + len(gap[: found[0].start()].encode()), start + len(
        gap[: found[0].end()].encode()
    )
