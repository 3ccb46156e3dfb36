"""Conditions before and after an edit: those that became constant, and comparisons with a literal
text that accept more than it.
"""

from __future__ import annotations

import ast


def constant_condition(before: ast.AST, after: ast.AST) -> str:
    found = _count_constant(after) > _count_constant(before)
    return "makes a condition constant" if found else ""


def _count_constant(tree: ast.AST) -> int:
    found = 0
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
                found += _value(test) is not None
            case ast.While(test=test):
                found += _value(test) is False
            case ast.Return(value=ast.Compare() | ast.BoolOp() as test):
                found += _value(test) is not None
            case _:
                pass
    return found


def _value(test: ast.expr) -> bool | None:
    """Return the truth of a condition that is the same for all values; else None."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            known = _value(operand)
            return None if known is None else not known
        case ast.BoolOp(op=operator, values=values):
            decides = isinstance(operator, ast.Or)
            known_values = [_value(value) for value in values]
            if decides in known_values:
                return decides
            return (not decides) if None not in known_values else None
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return False
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return _outcome(left, operator, right)
        case _:
            return None


def _outcome(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool | None:
    """Return the outcome of a comparison with itself, and of a length with zero; else None."""
    if ast.dump(left) == ast.dump(right) and not any(
        isinstance(node, ast.Call | ast.Await | ast.NamedExpr) for node in ast.walk(left)
    ):
        if isinstance(operator, ast.Eq | ast.Is | ast.LtE | ast.GtE):
            return True
        return None if isinstance(operator, ast.In | ast.NotIn) else False
    match left, operator, right:
        case ast.Call(func=ast.Name(id="len")), ast.GtE(), ast.Constant(value=0):
            return True
        case ast.Call(func=ast.Name(id="len")), ast.Lt(), ast.Constant(value=0):
            return False
        case _:
            return None


def loosened_text(before: ast.AST, after: ast.AST) -> str:
    """Say whether a literal text that was compared as a whole is now searched or ordered. The order
    of texts with digits, such as versions and dates, has a meaning.
    """
    old, new = _compared_texts(before), _compared_texts(after)
    for text in sorted(set(new), key=repr):
        loose = [_is_loose(operator, text) for operator in new[text]]
        known = [_is_loose(operator, text) for operator in old.get(text, ())]
        if sum(loose) > sum(known) and known.count(False) > loose.count(False):
            return f"accepts parts of the text {text!r}, or what comes before or after it"
    return ""


def _compared_texts(tree: ast.AST) -> dict[str | bytes, list[ast.cmpop]]:
    """Return the literal texts on the right of comparisons, each with the operators."""
    found: dict[str | bytes, list[ast.cmpop]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for operator, side in zip(node.ops, node.comparators, strict=True):
                if isinstance(side, ast.Constant) and isinstance(side.value, str | bytes):
                    found.setdefault(side.value, []).append(operator)
    return found


def _is_loose(operator: ast.cmpop, text: str | bytes) -> bool:
    if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        return False
    return isinstance(operator, ast.In | ast.NotIn) or not any(
        letter in repr(text) for letter in "0123456789"
    )
