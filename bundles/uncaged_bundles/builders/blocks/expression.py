"""Compiler for the expressions of blocks, from Python syntax to nested lists. Anything but pure
computation is refused, with its column.

``carried.expression`` evaluates the lists inside the sandbox.
"""

from __future__ import annotations

import ast

from uncaged_bundles.shapes import Path, ShapeError
from uncaged_bundles.syntax import parse_expression

FUNCTIONS = (
    *("len", "text", "json", "int", "float", "bool", "abs", "round", "min", "max"),
    *("sum", "sorted", "reversed", "unique", "any", "all"),
)
METHODS = (
    *(
        "lower",
        "upper",
        "strip",
        "split",
        "splitlines",
        "startswith",
        "endswith",
        "join",
        "replace",
    ),
    *("get", "keys", "values", "items"),
)
LONGEST_TEXT = 2000
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"},
}


def compile_expression(text: str, path: Path) -> list[object]:
    """Return the nested lists of an expression.

    Raises:
        ShapeError: it does not parse, or has a part that a block may not have; with the column.
    """
    if len(text) > LONGEST_TEXT:
        raise ShapeError(
            path, f"has {len(text):,} characters; an expression has at most {LONGEST_TEXT:,}"
        )
    try:
        tree = parse_expression(text.strip())
        return _Compiler(path).tree(tree.body)
    except SyntaxError as exc:
        raise ShapeError(
            path, f"column {max(exc.offset or 1, 1)}: not an expression: {exc.msg}"
        ) from exc
    except (ValueError, RecursionError, MemoryError) as exc:
        raise ShapeError(path, f"cannot be read: {exc or 'it is nested too deeply'}") from exc


class _Compiler:
    """Compiles one expression to nested lists, each with its operation first."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tree(self, node: ast.expr) -> list[object]:
        compiled = self._operand(node) or self._operation(node) or self._collection(node)
        if compiled is None:
            raise self._refused(node, f"{ast.unparse(node)!r} is not possible here")
        return compiled

    def _operand(self, node: ast.expr) -> list[object] | None:
        """Compile a constant, a name, a part of a value, or a call."""
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return ["const", value]
            case ast.Name(id=name):
                return ["name", name]
            case ast.Attribute(value=base, attr=key) if not key.startswith("__"):
                return ["key", self.tree(base), key]
            case ast.Subscript(value=base, slice=ast.Slice(lower=lower, upper=upper, step=None)):
                return [
                    "slice",
                    self.tree(base),
                    *(self.tree(part) if part else ["const", None] for part in (lower, upper)),
                ]
            case ast.Subscript(value=base, slice=index):
                return ["item", self.tree(base), self.tree(index)]
            case ast.Call(keywords=[]):
                return self._call(node)
            case _:
                return None

    def _operation(self, node: ast.expr) -> list[object] | None:
        """Compile an operator, a comparison or a choice."""
        match node:
            case ast.BoolOp(op=op, values=values):
                return [
                    "and" if isinstance(op, ast.And) else "or",
                    [self.tree(value) for value in values],
                ]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ["not", self.tree(operand)]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return ["minus", self.tree(operand)]
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _SIGNS:
                return ["op", _SIGNS[type(op)], self.tree(left), self.tree(right)]
            case ast.Compare(left=left, ops=ops, comparators=others):
                links = [
                    [_COMPARISONS[type(op)], self.tree(other)]
                    for op, other in zip(ops, others, strict=True)
                ]
                return ["compare", self.tree(left), links]
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return ["if", self.tree(test), self.tree(body), self.tree(orelse)]
            case _:
                return None

    def _collection(self, node: ast.expr) -> list[object] | None:
        """Compile a list, a mapping, a text with values, or a comprehension."""
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return ["list", [self.tree(item) for item in items]]
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return [
                    "dict",
                    [
                        [self.tree(key), self.tree(value)]
                        for key, value in zip(keys, values, strict=True)
                        if key
                    ],
                ]
            case ast.JoinedStr(values=values):
                return ["text", [self._part(value) for value in values]]
            case ast.ListComp(
                elt=element,
                generators=[
                    ast.comprehension(target=ast.Name(id=name), iter=items, ifs=ifs, is_async=0)
                ],
            ):
                return [
                    "each",
                    self.tree(element),
                    name,
                    self.tree(items),
                    [self.tree(condition) for condition in ifs],
                ]
            case _:
                return None

    def _part(self, node: ast.expr) -> list[object]:
        match node:
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self.tree(value)
            case ast.Constant():
                return self.tree(node)
            case _:
                pass
        raise self._refused(node, "a value in an f-string has no '!' and no ':' after it")

    def _call(self, node: ast.Call) -> list[object]:
        arguments = [self.tree(argument) for argument in node.args]
        match node.func:
            case ast.Name(id=name):
                if name not in FUNCTIONS:
                    raise self._refused(
                        node, f"there is no function {name!r}; there are: {', '.join(FUNCTIONS)}"
                    )
                return ["call", name, arguments]
            case ast.Attribute(value=base, attr=name):
                if name not in METHODS:
                    raise self._refused(
                        node, f"there is no method {name!r}; there are: {', '.join(METHODS)}"
                    )
                return ["method", self.tree(base), name, arguments]
            case _:
                pass
        raise self._refused(node, f"{ast.unparse(node.func)!r} cannot be called")

    def _refused(self, node: ast.expr, why: str) -> ShapeError:
        return ShapeError(self._path, f"column {node.col_offset + 1}: {why}")
