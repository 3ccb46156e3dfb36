"""Edit operators for conditions: one more case with `or`, one more demand with `and`, a test for
None before use.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from .edit import Nature, SourceEdit
from .edit_site import SYMBOLS, EditSite
from .facts import NUMBERS, SEQUENCES
from .scopes import conditions_of

LOOSE = ast.BoolOp | ast.IfExp | ast.NamedExpr | ast.Lambda
MAX_FURTHER = 24
MAX_LENGTH = 60
INNER = 0.5
MAX_INNER = 8
"""Most conditions that a chain inside a condition is joined with; they are less likely."""


def extensions(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield `C or D`, `D or C`, `C and D`, `D and C` for the condition C, with D from the variables
    in scope and the function's conditions.
    """
    nature: Nature = "hide" if _leads_to_raise(node) else "change"
    for condition in conditions_of(node):
        inside = list(ast.walk(condition))
        for extra, likely, before in _further_conditions(site, condition, inside):
            text = _joined(site, condition, ast.Or, extra, before=before)
            yield site.edit(condition, text, "condition extended", likely)
            text = _joined(site, condition, ast.And, extra, before=before)
            yield site.edit(condition, text, "condition narrowed", likely, nature)
        for part in inside[1:]:
            if isinstance(part, ast.BoolOp):
                yield from _inner_extensions(site, part, nature)


def _inner_extensions(site: EditSite, part: ast.BoolOp, nature: Nature) -> Iterator[SourceEdit]:
    """Yield a chain that is part of a condition, with one condition more."""
    found = _further_conditions(site, part, list(ast.walk(part)))
    for extra, likely, before in found[:MAX_INNER]:
        text = _joined(site, part, type(part.op), extra, before=before)
        if isinstance(part.op, ast.Or):
            yield site.edit(part, text, "condition extended", INNER * likely)
        else:
            yield site.edit(part, text, "condition narrowed", INNER * likely, nature)


def _joined(
    site: EditSite, condition: ast.expr, operator: type[ast.boolop], extra: str, *, before: bool
) -> str:
    """Return *condition* with the condition *extra* before or after it. A chain of the same
    operator gets no parentheses.
    """
    text = site.segment(condition)
    if isinstance(condition, LOOSE) and not isinstance(getattr(condition, "op", None), operator):
        text = f"({text})"
    added = _conjunct(extra) if operator is ast.And else extra
    parts = (added, text) if before else (text, added)
    return f" {SYMBOLS[operator]} ".join(parts)


def exceptions(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield handlers and raise statements with the exception that the failing test saw or that the
    file uses.
    """
    named = [kind for kind, _ in site.facts.errors if kind not in ("AssertionError", "Failed")]
    used = [name for name in site.index.exceptions if name not in named]
    if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name | ast.Attribute):
        known = site.segment(node.type)
        for rank, name in enumerate(name for name in (*named, *used) if name != known):
            yield site.edit(
                node.type, f"({known}, {name})", "exception added", 1 / (1 + 0.3 * rank)
            )
            yield site.edit(node.type, name, "exception caught", 1 / (1 + 0.3 * rank))
    raised = node.exc if isinstance(node, ast.Raise) else None
    kind = raised.func if isinstance(raised, ast.Call) else raised
    if isinstance(kind, ast.Name):
        others = dict.fromkeys(
            [
                *used,
                "ValueError",
                "TypeError",
                "KeyError",
                "IndexError",
                "LookupError",
                "RuntimeError",
                "NotImplementedError",
            ]
        )
        for rank, name in enumerate(name for name in others if name != kind.id):
            yield site.edit(kind, name, "exception raised", 1 / (1 + 0.3 * rank))


def _further_conditions(
    site: EditSite, condition: ast.expr, nodes: Sequence[ast.AST]
) -> list[tuple[str, float, bool]]:
    """Return conditions to add, likeliest first, each with a weight and whether it has to come
    first; none that is part of the chain *condition*. An error about None makes tests for None
    likely.

    nodes: those of the condition.
    """
    missing = any("NoneType" in message for _, message in site.facts.errors)
    inside = {node.id for node in nodes if isinstance(node, ast.Name)}
    found: list[tuple[str, float]] = []
    for name in (name for name in site.names if name not in ("self", "cls") and not name.isupper()):
        types, near = site.names[name], name in inside
        own = 1.0 if near else 0.6
        absent = (0.3, 0.8, 1.0)[
            ("NoneType" in types) + (missing and bool(not types or "NoneType" in types))
        ]
        found.append((f"{name} is None", absent * own))
        empty = types & (SEQUENCES | {"dict", "set"})
        found.append((f"not {name}", (0.5 if empty or near else 0.2) * own))
        found.append((name, (0.4 if "bool" in types else 0.2) * own))
        number = types & NUMBERS and "bool" not in types
        found += [
            (f"{name} {test}", likely * own * (1.0 if number else 0.1))
            for test, likely in (("== 0", 0.35), ("< 0", 0.35), ("> 0", 0.25), ("== 1", 0.2))
        ]
    if site.function is not None:
        for used in site.scope.conditions:
            parts = used.values if isinstance(used, ast.BoolOp) else [used]
            texts = [site.segment(part) for part in parts]
            found += [
                (f"({text})" if isinstance(part, LOOSE) else text, 0.4)
                for part, text in zip(parts, texts, strict=True)
                if len(text) <= MAX_LENGTH
            ]
    operands = condition.values if isinstance(condition, ast.BoolOp) else []
    known = {site.segment(part) for part in (condition, *operands)}
    best: dict[str, float] = {}
    for text, weight in found:
        if text not in known:
            best[text] = max(weight, best.get(text, 0.0))
    ordered = sorted(best.items(), key=lambda item: -item[1])[:MAX_FURTHER]
    return [
        (text, weight / (1 + 0.06 * rank), _protects(text, inside))
        for rank, (text, weight) in enumerate(ordered)
    ]


def _leads_to_raise(node: ast.AST) -> bool:
    """Return whether the condition of *node* decides over a `raise` alone."""
    return isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)


def _protects(extra: str, inside: Collection[str]) -> bool:
    """Return whether *extra* tests a variable for None or emptiness that a condition with the names
    *inside* goes on to use: it has to come first.
    """
    name = extra.removeprefix("not ").removesuffix(" is None")
    return name != extra and name in inside


def _conjunct(extra: str) -> str:
    """Return what `and` demands where `or` would add *extra*: the opposite of a test for emptiness
    or None.
    """
    if extra.startswith("not "):
        return extra.removeprefix("not ")
    return extra.replace(" is None", " is not None") if extra.endswith(" is None") else extra
