"""Edit operators for calls: arguments exchanged, missing or one too many, a sibling function, a
call around a value added or removed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import combinations

from .arguments import append_argument, called_name
from .edit import SourceEdit
from .edit_site import EditSite
from .facts import SEQUENCES, UNKNOWN_FIT, Types, fit, number_fit

TEXT: Types = frozenset({"str"})
CONTAINERS: Types = frozenset({"list", "dict", "set"})
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


def arguments(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield calls with two arguments exchanged, or one dropped."""
    if not isinstance(node, ast.Call):
        return
    plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
    for turn, (first, second) in enumerate(combinations(plain, 2)):
        yield _swap(site, first, second, "argument swap", 1 / (1 + 0.3 * turn))
    for turn, (left, right) in enumerate(combinations(node.keywords, 2)):
        yield _swap(site, left.value, right.value, "argument swap", 0.7 / (1 + 0.3 * turn))
    every: list[ast.AST] = [*node.args, *node.keywords]
    for index, argument in enumerate(every if len(every) > 1 else []):
        low, high = site.source.span(argument)
        low = site.source.span(every[index - 1])[1] if index else low
        high = high if index else site.source.span(every[1])[0]
        yield site.edit_span(low, high, "", "argument dropped", 1.0)


def added_arguments(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield calls with one variable or constant more."""
    if isinstance(node, ast.Call) and not node.keywords:
        names = [name for name in site.names if name not in ("self", "cls")]
        for rank, name in enumerate([*names[:8], "0", "1", "True", "None"]):
            likely = 1 / (1 + 0.25 * rank)
            yield from append_argument(site, node, name, "argument added", likely)


def sort_orders(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield a sort in the reverse order."""
    if isinstance(node, ast.Call) and called_name(node) in ("sorted", "sort"):
        own = any(keyword.arg == "reverse" for keyword in node.keywords)
        yield from () if own else append_argument(site, node, "reverse=True", "order reversed", 1.0)


def keyword_arguments(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield a keyword argument that other calls of the same function pass, or that is called like
    a parameter of this function.
    """
    if not isinstance(node, ast.Call):
        return
    own = {keyword.arg for keyword in node.keywords}
    texts = [
        f"{keyword.arg}={site.segment(keyword.value)}"
        for call in site.index.module.calls.get(called_name(node), ())
        for keyword in call.keywords
        if keyword.arg is not None and keyword.arg not in own
    ]
    texts += [f"{held}={held}" for held in site.scope.parameters if held in site.index.keywords]
    known = [text for text in dict.fromkeys(texts) if text.partition("=")[0] not in own]
    for rank, text in enumerate(known[:8]):
        if len(text) <= 60 and "\n" not in text:
            likely = 1 / (1 + 0.3 * rank)
            yield from append_argument(site, node, text, "keyword passed", likely)


def siblings(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield a function or method with a similar purpose, or another function of the same module."""
    if isinstance(node, ast.Attribute):
        end = site.source.span(node)[1]
        start, name = end - len(node.attr.encode()), node.attr
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        (start, end), name = site.source.span(node), node.id
    else:
        return
    for family in SIBLINGS:
        if name in family:
            for rank, other in enumerate(other for other in family if other != name):
                likely = (1.0 if len(family) == 2 else 0.7) / (1 + 0.3 * rank)
                yield site.edit_span(start, end, other, "sibling call", likely, line=node.lineno)
    above = site.source.parents.get(node)
    if (
        isinstance(node, ast.Name)
        and isinstance(above, ast.Call)
        and above.func is node
        and name in site.functions
    ):
        for rank, other in enumerate(other for other in site.functions if other != name):
            yield site.edit(node, other, "other function", 1 / (1 + 0.2 * rank))


def wrappings(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield calls around a value: `len`, `abs`, `max(0, …)`, `sorted`, `.lower()`, `()` …"""
    if not isinstance(node, ast.expr) or not _is_wrappable(site, node):
        return
    text, types = site.segment(node), site.types(node)
    for rank, (name, likely) in enumerate(_wrappers(site, node)):
        yield site.edit(node, f"{name}({text})", "conversion", likely / (1 + 0.1 * rank))
    if not isinstance(node, ast.Constant):
        place = 1.0 if isinstance(site.source.parents.get(node), ast.Return | ast.Assign) else 0.4
        place *= number_fit(types)
        own = sorted(
            (name for name in site.names if name not in (text, "self")),
            key=lambda name: -number_fit(site.names[name]),
        )
        targets = [
            target.id
            for target in getattr(site.statement, "targets", [])
            if isinstance(target, ast.Name)
        ]
        limits = list(dict.fromkeys([*targets, "0", *own[:6], "1"]))
        for rank, limit in enumerate(limits):
            for name in ("max", "min"):
                yield site.edit(node, f"{name}({limit}, {text})", "limit", place / (1 + 0.2 * rank))
    if not isinstance(node, ast.Constant):
        for rank, method in enumerate(
            ("lower()", "strip()", "upper()", "rstrip()", "split()", "title()")
        ):
            yield site.edit(
                node,
                f"{site.operand(node)}.{method}",
                "method of a text",
                fit(types, TEXT) / (1 + 0.3 * rank),
            )


def unwrappings(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield the argument instead of the call, and the object instead of its method's result."""
    match node:
        case ast.Call(func=function, args=operands):
            for rank, argument in enumerate(
                one for one in operands if not isinstance(one, ast.Starred)
            ):
                yield site.edit(
                    node, site.instead(node, argument), "argument for call", 1 / (1 + 0.5 * rank)
                )
            above = site.source.parents.get(node)
            if isinstance(function, ast.Attribute) and not isinstance(above, ast.Expr):
                yield site.edit(node, site.operand(function.value), "object for call", 1.0)
        case _:
            pass


def awaits(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield the call with or without `await`."""
    match node:
        case ast.Call() if isinstance(site.function, ast.AsyncFunctionDef):
            if not isinstance(site.source.parents.get(node), ast.Await):
                text = site.composite(node, f"await {site.segment(node)}")
                yield site.edit(node, text, "await", 0.7)
        case ast.Await(value=value):
            yield site.edit(node, site.segment(value), "await", 0.2)
        case _:
            pass


def elements(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield lists with an element more or less, pairs exchanged, and `yield from` for `yield`."""
    match node:
        case ast.Yield(value=ast.expr() as value):
            yield site.edit(node, f"yield from {site.segment(value)}", "yield", 0.4)
        case ast.YieldFrom(value=value):
            yield site.edit(node, f"yield {site.segment(value)}", "yield", 0.5)
        case ast.List(elts=[]) if isinstance(node.ctx, ast.Load):
            names = [name for name in site.names if name not in ("self", "cls")]
            for rank, inner in enumerate(["[]", *names[:8], "0", "1"]):
                yield site.edit(node, f"[{inner}]", "element", 0.3 / (1 + 0.2 * rank))
        case ast.List(elts=[only]) if isinstance(node.ctx, ast.Load):
            yield site.edit(node, "[]", "element", 0.15)
            yield site.edit(node, site.segment(only), "element", 0.15)
        case ast.Tuple(elts=[first, second]) if isinstance(node.ctx, ast.Load):
            yield _swap(site, first, second, "element swap", 0.45)
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element) if not isinstance(
            element, ast.Name
        ):
            yield site.edit(element, site.segment(node.generators[0].target), "element", 0.15)


def _swap(site: EditSite, first: ast.AST, second: ast.AST, kind: str, weight: float) -> SourceEdit:
    (low, middle), (resumed, high) = site.source.span(first), site.source.span(second)
    after = site.segment(second) + site.source.text(middle, resumed) + site.segment(first)
    return site.edit_span(low, high, after, kind, weight, line=getattr(first, "lineno", 0))


def _wrappers(site: EditSite, node: ast.expr) -> list[tuple[str, float]]:
    types = site.types(node)
    found: list[tuple[str, float]] = []
    if isinstance(node, ast.Constant):
        return found
    number, text = number_fit(types), fit(types, TEXT)
    found += [("abs", number), ("int", max(number, 0.8 * text)), ("round", 0.6 * number)]
    found += [("float", 0.4 * max(number, text)), ("str", 0.8 * max(number, UNKNOWN_FIT))]
    known = fit(types, SEQUENCES | CONTAINERS)
    found += [("len", known), ("sorted", 0.9 * known), ("list", 0.8 * known), ("set", 0.7 * known)]
    found += [("reversed", 0.7 * known), ("sum", 0.5 * known), ("tuple", 0.4 * known)]
    found += [("max", 0.3 * known), ("min", 0.3 * known)]
    if isinstance(site.source.parents.get(node), ast.For | ast.comprehension):
        found += [("enumerate", 0.3 * known), ("range", 0.3 * known)]
    return sorted(found, key=lambda item: -item[1])


def _is_wrappable(site: EditSite, node: ast.expr) -> bool:
    above = site.source.parents.get(node)
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
