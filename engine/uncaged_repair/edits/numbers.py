"""Edit operators for numbers: off by one, another constant, a bound that is one too far."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeVar

from .edit import SourceEdit
from .edit_site import SYMBOLS, EditSite
from .facts import SEQUENCES, fit, number_fit
from .operators import is_neutral, plain_number
from .texts import is_bare

SHOWN_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
MAX_SHOWN = 8
Number = TypeVar("Number", int, float)


def constants(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield the other truth value, and other numbers."""
    if not isinstance(node, ast.Constant) or is_bare(site, node):
        return
    value = node.value
    if isinstance(value, bool):
        yield site.edit(node, str(not value), "boolean", 1.0)
    elif isinstance(value, int):
        yield from _integers(site, node, value)
    elif isinstance(value, float):
        yield from _floats(site, node, value)


def shown_numbers(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield the whole numbers that the messages of the failing tests show."""
    if not isinstance(node, ast.Constant) or type(node.value) is not int or is_bare(site, node):
        return
    for rank, text in enumerate(_of_errors(site)):
        if text != str(node.value):
            yield site.edit(node, text, "number of the error", 1 / (1 + 0.3 * rank))


def _integers(site: EditSite, node: ast.Constant, value: int) -> Iterator[SourceEdit]:
    """Yield nearby and common numbers in place of *value*."""
    near = [value + 1, value - 1, -value, 0, 1, 2, value * 2, value * 10, value // 10, value + 2]
    negated = isinstance(site.source.parents.get(node), ast.UnaryOp)
    for rank, other in enumerate(_distinct([*near, 60, 100], value)):
        if (other >= 0 or not negated) and not _is_neutral(site, node, other):
            likely = (1.0, 0.95, 0.5, 0.5, 0.45)[rank] if rank < 5 else 0.3 / (rank - 3)
            yield site.edit(node, str(other), "number", likely)


def _of_errors(site: EditSite) -> list[str]:
    """Return the numbers that the messages of the failing tests show, in their order."""
    found = [text for _, message in site.facts.errors for text in SHOWN_NUMBER.findall(message)]
    return list(dict.fromkeys(found))[:MAX_SHOWN]


def _floats(site: EditSite, node: ast.Constant, value: float) -> Iterator[SourceEdit]:
    """Yield other powers of ten, neighbours and common numbers in place of *value*."""
    scaled = [-value, value * 10, value / 10, value * 100, value / 100, value + 1, value - 1]
    for rank, other in enumerate(_distinct([*scaled, 0.0, 1.0, 2.0, 0.5], value)):
        yield site.edit(node, repr(round(other, 12)), "number", 0.4 / (1 + 0.3 * rank))


def off_by_one(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield an index, a bound, a size or a limit plus one and minus one."""
    if not isinstance(
        node, ast.Name | ast.Call | ast.BinOp | ast.Attribute | ast.Subscript
    ) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    likely = _off_by_one_weight(site, node) * number_fit(site.types(node))
    if likely <= 0:
        return
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add | ast.Sub)
        and plain_number(node.right)
    ):
        return  # `constants` changes its number
    text = site.segment(node)
    for sign in ("+", "-"):
        yield site.edit(
            node,
            site.composite(node, f"{text} {sign} 1", sign),
            "off by one",
            likely,
        )


def offsets(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield a number with a variable added or subtracted, in an argument, an index or a returned
    value, and its square and double.
    """
    if (
        not isinstance(node, ast.Name | ast.Attribute)
        or not isinstance(node.ctx, ast.Load)
        or not _is_value(site, node)
    ):
        return
    own, text = number_fit(site.types(node)), site.segment(node)
    fits = {
        name: number_fit(held)
        for name, held in site.names.items()
        if name not in (text, "self", "cls") and not name.isupper()
    }
    for rank, other in enumerate(sorted(fits, key=lambda name: -fits[name])[:8]):
        for sign, likely in (("-", 1.0), ("+", 0.9), ("*", 0.6)):
            yield site.edit(
                node,
                site.composite(node, f"{text} {sign} {other}", sign),
                "offset",
                likely * own * fits[other] / (1 + 0.25 * rank),
            )
    for suffix, likely in (("** 2", 0.9), ("* 2", 0.9), ("// 2", 0.7), ("/ 2", 0.5)):
        text_after = site.composite(node, f"{text} {suffix}", suffix.split()[0])
        yield site.edit(node, text_after, "offset", likely * own)


def slices(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield slices with another bound, the whole sequence for a part of it, and other indices."""
    match node:
        case ast.Subscript(slice=ast.Slice() as bounds, ctx=ast.Load()):
            yield from _other_bounds(site, node, bounds)
        case ast.Subscript(slice=ast.Tuple(elts=[first, second])):
            yield site.edit_span(
                site.source.span(first)[0],
                site.source.span(second)[1],
                f"{site.segment(second)}, {site.segment(first)}",
                "index swap",
                1.0,
            )
        case ast.Subscript(
            value=ast.Subscript(value=ast.expr() as base, slice=inner), slice=outer
        ) if not _sliced(inner, outer):
            yield site.edit(
                node,
                f"{site.operand(base)}[{site.segment(outer)}][{site.segment(inner)}]",
                "index swap",
                1.0,
            )
        case ast.Subscript(value=value, slice=ast.Constant(value=int()), ctx=ast.Load()):
            yield site.edit(node, f"{site.operand(value)}[-1]", "index", 1.0)
        case _:
            pass


def _other_bounds(site: EditSite, node: ast.Subscript, bounds: ast.Slice) -> Iterator[SourceEdit]:
    """Yield the slice with bounds dropped, exchanged, added or replaced, and the whole sequence."""
    base = site.operand(node.value)
    lower, upper, step = (
        "" if part is None else site.segment(part)
        for part in (bounds.lower, bounds.upper, bounds.step)
    )
    for low, high, weight in (
        (lower, "", 0.4 if upper else 0.0),
        ("", upper, 0.4 if lower else 0.0),
        (upper, lower, 0.4),
        ("1", upper, 0.0 if lower else 0.45),
        (lower, "-1", 0.0 if upper else 0.45),
    ):
        if weight and (low, high) != (lower, upper):
            yield site.edit(node, f"{base}[{low}:{high}{step and f':{step}'}]", "slice", weight)
    yield site.edit(node, base, "whole for slice", 1.0)
    if not step:
        yield site.edit(node, f"{base}[{lower}:{upper}:-1]", "slice", 0.2)
        for rank, name in enumerate(_integer_names(site)[:6]):
            weight = 0.2 / (1 + 0.3 * rank)
            yield site.edit(node, f"{base}[{lower}:{name}]", "slice", weight)
            yield site.edit(node, f"{base}[{name}:{upper}]", "slice", weight)


def parts(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield slices of a sequence that is used as a whole."""
    if (
        not isinstance(node, ast.Name | ast.Attribute)
        or not isinstance(node.ctx, ast.Load)
        or not _is_value(site, node)
    ):
        return
    named = [
        f"[{form}]"
        for name in _integer_names(site)[:4]
        for form in (f"{name}:", f":{name}", f"{name} + 1:")
    ]
    likely = fit(site.types(node), SEQUENCES)
    for rank, part in enumerate(("[1:]", "[:-1]", "[::-1]", "[:]", *named)):
        yield site.edit(
            node, f"{site.segment(node)}{part}", "part of a sequence", likely / (1 + 0.15 * rank)
        )


def _sliced(*indices: ast.expr) -> bool:
    return any(isinstance(index, ast.Slice) for index in indices)


def _is_neutral(site: EditSite, node: ast.Constant, value: int) -> bool:
    above = site.source.parents.get(node)
    if not isinstance(above, ast.BinOp):
        return False
    there = ast.Constant(value=value)
    return is_neutral(
        there if above.left is node else None,
        SYMBOLS[type(above.op)],
        there if above.right is node else None,
    )


def _distinct(values: list[Number], known: Number) -> list[Number]:
    return [value for value in dict.fromkeys(values) if value != known]


def _off_by_one_weight(site: EditSite, node: ast.AST) -> float:
    above = site.source.parents.get(node)
    match above:
        case ast.Call(func=ast.Name(id="range"), args=arguments):
            return 0.9 if arguments and arguments[-1] is node else 0.7
        case ast.Slice():
            return 0.75
        case ast.Subscript(slice=index) if index is node:
            return 0.6
        case ast.Tuple() if isinstance(site.source.parents.get(above), ast.Subscript):
            return 0.5
        case ast.Compare():
            return 0.35
        case ast.Call(args=arguments) if node in arguments:
            return 0.45
        case ast.Return() | ast.Assign() | ast.AugAssign():
            return 0.4
        case ast.BinOp():
            return 0.3
        case _:
            pass
    return 0.0


def _is_value(site: EditSite, node: ast.AST) -> bool:
    above = site.source.parents.get(node)
    if isinstance(above, ast.Call):
        return above.func is not node
    if isinstance(above, ast.Subscript):
        return above.slice is node
    return isinstance(
        above,
        ast.Return
        | ast.Assign
        | ast.AugAssign
        | ast.For
        | ast.comprehension
        | ast.BinOp
        | ast.Tuple
        | ast.Compare
        | ast.Slice
        | ast.Starred,
    )


def _integer_names(site: EditSite) -> list[str]:
    return [name for name, types in site.names.items() if "int" in types and "bool" not in types]
