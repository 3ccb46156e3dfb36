"""Wrong calls: arguments exchanged, missing or one too many, a sibling function, a call around a
value missing or one too many.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import combinations

from .edit import Edit
from .facts import fit, numeric, sequence
from .scene import Scene

SIBLINGS: Sequence[Sequence[str]] = tuple(
    tuple(family.split())
    for family in (
        "any all", "min max", "append extend insert appendleft", "add update discard remove", "strip lstrip rstrip",
        "startswith endswith", "upper lower title capitalize", "find rfind index", "floor ceil trunc", "keys values items",
        "sum max min len", "int round float abs",
        "sorted reversed list", "union intersection difference symmetric_difference", "issubset issuperset isdisjoint", "pop popleft",
        "split rsplit splitlines", "partition rpartition", "list tuple set", "sin cos tan", "heappush heappop", "bisect_left bisect_right",
        "get pop setdefault", "isdigit isalpha isalnum", "ljust rjust center", "mean median", "log log2 log10 exp", "days seconds",
        "islice takewhile dropwhile", "combinations permutations product", "zip enumerate", "map filter", "first last", "left right",
        "encode decode", "dumps loads", "pow sqrt",
    )
)  # fmt: skip


def arguments(scene: Scene, node: ast.AST) -> Iterator[Edit]:
    """Two arguments exchanged; one left out; one variable handed in as well."""
    if not isinstance(node, ast.Call):
        return
    plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
    for turn, (first, second) in enumerate(combinations(plain, 2)):
        if fit(scene.types(first), scene.types(second)):
            yield _exchange(scene, first, second, "argument swap", 0.8 / (1 + 0.3 * turn))
    for turn, (one, other) in enumerate(combinations(node.keywords, 2)):
        if fit(scene.types(one.value), scene.types(other.value)):
            yield _exchange(scene, one.value, other.value, "argument swap", 0.6 / (1 + 0.3 * turn))
    every: list[ast.AST] = [*node.args, *node.keywords]
    for index, argument in enumerate(every if len(every) > 1 else []):
        low, high = scene.source.span(argument)
        low = scene.source.span(every[index - 1])[1] if index else low
        high = high if index else scene.source.span(every[1])[0]
        yield scene.edit_span(low, high, "", "argument dropped", 0.25)
    yield from _added(scene, node)


def _added(scene: Scene, node: ast.Call) -> Iterator[Edit]:
    end = scene.source.span(node)[1] - 1
    if not scene.source.data[: end + 1].endswith(b")"):
        return
    names = [name for name in scene.names if name not in ("self", "cls")]
    bare_generator = len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp)
    if not node.keywords and not bare_generator:
        for rank, name in enumerate([*names[:8], "0", "1", "True", "None"]):
            yield scene.edit_span(
                end,
                end,
                f", {name}" if node.args else name,
                "argument added",
                0.16 / (1 + 0.25 * rank),
            )
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in ("sorted", "sort") and not any(
        keyword.arg == "reverse" for keyword in node.keywords
    ):
        yield scene.edit_span(
            end,
            end,
            f"{', ' if node.args or node.keywords else ''}reverse=True",
            "argument added",
            0.45,
        )


def siblings(scene: Scene, node: ast.AST) -> Iterator[Edit]:
    """A function or method with a similar purpose; another function of the same module."""
    if isinstance(node, ast.Attribute):
        end = scene.source.span(node)[1]
        start, name = end - len(node.attr.encode()), node.attr
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        (start, end), name = scene.source.span(node), node.id
    else:
        return
    for family in SIBLINGS:
        if name in family:
            for rank, other in enumerate(other for other in family if other != name):
                weight = 0.8 if len(family) == 2 else 0.55
                yield scene.edit_span(
                    start, end, other, "sibling call", weight / (1 + 0.3 * rank), line=node.lineno
                )
    above = scene.source.parents.get(node)
    if (
        isinstance(node, ast.Name)
        and isinstance(above, ast.Call)
        and above.func is node
        and name in scene.functions
    ):
        for rank, other in enumerate(other for other in scene.functions if other != name):
            yield scene.edit(node, other, "other function", 0.3 / (1 + 0.2 * rank))


def wraps(scene: Scene, node: ast.AST) -> Iterator[Edit]:
    """A call around a value: `len`, `abs`, `max(0, …)`, `sorted`, `.lower()`, `()` …"""
    if not isinstance(node, ast.expr) or not _wrappable(scene, node):
        return
    text, types = scene.segment(node), scene.types(node)
    for rank, (name, weight) in enumerate(_around(scene, node)):
        yield scene.edit(node, f"{name}({text})", "call around", weight / (1 + 0.1 * rank))
    if numeric(types) and types != {"bool"} and not isinstance(node, ast.Constant):
        place = 0.4 if isinstance(scene.source.parents.get(node), ast.Return | ast.Assign) else 0.16
        own = [
            name
            for name, held in scene.names.items()
            if numeric(held) and (held or not types) and name not in (text, "self")
        ]
        targets = [
            target.id
            for target in getattr(scene.statement, "targets", [])
            if isinstance(target, ast.Name)
        ]
        limits = list(dict.fromkeys([*targets, "0", *own[:6], "1"]))
        for rank, limit in enumerate(limits):
            for name in ("max", "min"):
                yield scene.edit(
                    node, f"{name}({limit}, {text})", "call around", place / (1 + 0.2 * rank)
                )
    if types == {"str"} and not isinstance(node, ast.Constant):
        for rank, method in enumerate(
            ("lower()", "strip()", "upper()", "rstrip()", "split()", "title()")
        ):
            yield scene.edit(
                node, f"{scene.operand(node)}.{method}", "call around", 0.3 / (1 + 0.3 * rank)
            )
    if types & {"list", "dict", "set"} and isinstance(node, ast.Name | ast.Attribute):
        yield scene.edit(node, f"{scene.operand(node)}.copy()", "call around", 0.3)
    if "dict" in types and isinstance(node, ast.Name | ast.Attribute):
        for method in ("items()", "values()"):
            yield scene.edit(node, f"{scene.operand(node)}.{method}", "call around", 0.2)
    if (
        isinstance(node, ast.Attribute | ast.Name)
        and not isinstance(getattr(node, "ctx", None), ast.Store)
        and types & {"method", "function"}
    ):
        yield scene.edit(node, f"{text}()", "call added", 0.6)
    if isinstance(node, ast.Attribute) and not types and isinstance(node.ctx, ast.Load):
        yield scene.edit(node, f"{text}()", "call added", 0.2)


def unwraps(scene: Scene, node: ast.AST) -> Iterator[Edit]:
    """The argument instead of the call; the object instead of its method's result; the method
    itself; a call awaited or not.
    """
    match node:
        case ast.Call(func=function, args=operands):
            for rank, argument in enumerate(
                one for one in operands if not isinstance(one, ast.Starred)
            ):
                yield scene.edit(
                    node, scene.instead(node, argument), "call removed", 0.4 / (1 + 0.5 * rank)
                )
            above = scene.source.parents.get(node)
            if isinstance(function, ast.Attribute) and not isinstance(above, ast.Expr):
                yield scene.edit(node, scene.operand(function.value), "call removed", 0.25)
            if not operands and not node.keywords:
                yield scene.edit(node, scene.segment(function), "call removed", 0.12)
            if isinstance(scene.function, ast.AsyncFunctionDef) and not isinstance(
                above, ast.Await
            ):
                yield scene.edit(
                    node, scene.composite(node, f"await {scene.segment(node)}"), "await", 0.7
                )
        case ast.Await(value=value):
            yield scene.edit(node, scene.segment(value), "await", 0.2)
        case _:
            pass


def elements(scene: Scene, node: ast.AST) -> Iterator[Edit]:
    """An element more or less in a list; two of a pair exchanged; `yield from` for `yield`."""
    match node:
        case ast.Yield(value=ast.expr() as value):
            yield scene.edit(node, f"yield from {scene.segment(value)}", "yield", 0.4)
        case ast.YieldFrom(value=value):
            yield scene.edit(node, f"yield {scene.segment(value)}", "yield", 0.5)
        case ast.List(elts=[]) if isinstance(node.ctx, ast.Load):
            names = [name for name in scene.names if name not in ("self", "cls")]
            for rank, inner in enumerate(["[]", *names[:8], "0", "1"]):
                yield scene.edit(node, f"[{inner}]", "element", 0.3 / (1 + 0.2 * rank))
        case ast.List(elts=[only]) if isinstance(node.ctx, ast.Load):
            yield scene.edit(node, "[]", "element", 0.15)
            yield scene.edit(node, scene.segment(only), "element", 0.15)
        case ast.Tuple(elts=[first, second]) if isinstance(node.ctx, ast.Load):
            yield _exchange(scene, first, second, "element swap", 0.45)
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element) if not isinstance(
            element, ast.Name
        ):
            yield scene.edit(element, scene.segment(node.generators[0].target), "element", 0.15)


def _exchange(scene: Scene, first: ast.AST, second: ast.AST, kind: str, weight: float) -> Edit:
    (low, middle), (resumed, high) = scene.source.span(first), scene.source.span(second)
    after = scene.segment(second) + scene.source.text(middle, resumed) + scene.segment(first)
    return scene.edit_span(low, high, after, kind, weight, line=getattr(first, "lineno", 0))


def _around(scene: Scene, node: ast.expr) -> list[tuple[str, float]]:
    types = scene.types(node)
    found: list[tuple[str, float]] = []
    if isinstance(node, ast.Constant):
        return found
    if numeric(types) and types != {"bool"}:
        found += [
            ("abs", 0.4 if types else 0.15),
            ("int", 0.35 if types else 0.15),
            ("round", 0.25 if types else 0.1),
            ("float", 0.15),
        ]
        found += [("str", 0.3 if types else 0.15)]
    if types & {"str"} or (not types and isinstance(node, ast.Call | ast.Subscript | ast.Name)):
        found += [("int", 0.3 if types else 0.1), ("float", 0.15 if types else 0.05)]
    if sequence(types) or types & {"set", "dict"}:
        known = 1.0 if types else 0.4
        found += [
            ("len", 0.4 * known),
            ("sorted", 0.35 * known),
            ("list", 0.3 * known),
            ("set", 0.3 * known),
            ("reversed", 0.3 * known),
            ("sum", 0.2 * known),
        ]
        found += [("tuple", 0.15 * known), ("max", 0.12 * known), ("min", 0.12 * known)]
        if isinstance(scene.source.parents.get(node), ast.For | ast.comprehension):
            found += [("enumerate", 0.1 * known), ("range", 0.1 * known)]
    return found


def _wrappable(scene: Scene, node: ast.expr) -> bool:
    above = scene.source.parents.get(node)
    if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del) or isinstance(
        node, ast.Starred | ast.Slice | ast.JoinedStr | ast.FormattedValue | ast.Lambda
    ):
        return False
    if isinstance(above, ast.Call):
        return above.func is not node
    if isinstance(
        above,
        ast.Attribute
        | ast.Expr
        | ast.FormattedValue
        | ast.JoinedStr
        | ast.FunctionDef
        | ast.ClassDef
        | ast.withitem
        | ast.Raise
        | ast.ExceptHandler,
    ):
        return False
    if isinstance(above, ast.Subscript):
        return above.slice is node
    return True
