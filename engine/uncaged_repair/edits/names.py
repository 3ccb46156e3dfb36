"""Edit operators for names: another variable, another attribute, a variable in place of a constant
or a call, and the reverse.
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Iterator

from .edit import SourceEdit
from .edit_site import EditSite
from .facts import UNKNOWN, Types, compatible, may_be_number
from .module_index import has_own_place

BUILTINS = frozenset(dir(builtins))


def variables(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield other variables of a compatible type; those that were seen with the same type first."""
    if not isinstance(node, ast.Name) or node.id not in site.names or _is_called(site, node):
        return
    types = site.names[node.id]
    stored = isinstance(node.ctx, ast.Store)
    place = 0.35 if stored else 0.7
    for rank, name in enumerate(_fitting_variables(site, types, but=node.id)):
        if not stored or (site.function is not None and name != "self"):
            yield site.edit(node, name, "variable", place / (1 + 0.2 * rank))
    if not stored:
        for rank, attribute in enumerate(_attributes(site, types)[:8]):
            yield site.edit(node, attribute, "variable", 0.25 / (1 + 0.3 * rank))


def unknown_names(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield replacements for a name that the failing run could not find: the nearest known name, or
    an attribute.
    """
    if not isinstance(node, ast.Name) or not any(
        kind in ("NameError", "UnboundLocalError") and f"'{node.id}'" in message
        for kind, message in site.facts.errors
    ):
        return
    known = [name for name in (*site.names, *site.functions, *sorted(BUILTINS)) if name != node.id]
    for rank, name in enumerate(difflib.get_close_matches(node.id, known, n=6, cutoff=0.5)):
        yield site.edit(node, name, "unknown name", 1.0 / (1 + 0.1 * rank))
    for prefix in ("self", "cls"):
        if prefix in site.names:
            yield site.edit(node, f"{prefix}.{node.id}", "unknown name", 0.95)


def attributes(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield another attribute of the same object, the object itself, or a variable."""
    if not isinstance(node, ast.Attribute):
        return
    base, types = site.operand(node.value), site.types(node)
    called = _is_called(site, node)
    known = site.facts.attributes
    owners = [kind for kind in site.types(node.value) if kind in known]
    found = {
        name: held
        for owner in owners
        for name, held in known[owner].items()
        if name != node.attr and not name.startswith("__")
    }
    if not owners:
        found = {name: UNKNOWN for name in _used_attributes(site, node) if name != node.attr}
    near = difflib.SequenceMatcher(b=node.attr)
    fitting = [
        name
        for name, held in found.items()
        if compatible(types, held) and ("method" in held) == (called and bool(owners))
    ]
    order = sorted(fitting, key=lambda name: (-_closeness(near, name), name))
    for rank, name in enumerate(order[:10]):
        yield site.edit(
            node, f"{base}.{name}", "attribute", (0.6 if not called else 0.5) / (1 + 0.2 * rank)
        )
    if called or isinstance(node.ctx, ast.Store):
        return
    if isinstance(node.value, ast.Name) and node.value.id != "self":
        yield site.edit(node, base, "attribute", 0.2)
    for rank, name in enumerate(_fitting_variables(site, types, but="")[:6]):
        yield site.edit(node, name, "variable", (0.25 if types else 0.12) / (1 + 0.2 * rank))


def substitutes(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield a variable in place of a constant, a call, an item or an operation, and a constant in
    place of a variable.
    """
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float | bool)
        and _is_replaceable(site, node)
    ):
        condition = _is_condition(site, node)
        for rank, name in enumerate(
            _fitting_variables(site, UNKNOWN if condition else site.types(node), but="")[:10]
        ):
            yield site.edit(
                node, name, "name for constant", (0.5 if condition else 0.3) / (1 + 0.25 * rank)
            )
        if isinstance(node.value, bool):
            yield from _comparisons_for(site, node)
    elif isinstance(node, ast.Call | ast.Subscript | ast.BinOp | ast.IfExp) and isinstance(
        getattr(node, "ctx", ast.Load()), ast.Load
    ):
        if not _is_replaceable(site, node):
            return
        inside = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        for rank, name in enumerate(_fitting_variables(site, site.types(node), but="")[:10]):
            weight = (0.3 if name in inside else 0.25) if site.types(node) else 0.18
            yield site.edit(node, name, "name for expression", weight / (1 + 0.2 * rank))
    elif (
        isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and may_be_number(site.types(node))
        and site.types(node)
        and not _is_called(site, node)
    ):
        for rank, text in enumerate(("0", "1", "2", "-1")):
            yield site.edit(node, text, "constant for name", 0.16 / (1 + 0.3 * rank))


def neighbours(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield other items, attributes or calls that the function uses elsewhere."""
    if (
        not isinstance(node, ast.Subscript | ast.Attribute | ast.Call)
        or site.function is None
        or _is_called(site, node)
        or not _is_replaceable(site, node)
    ):
        return
    stored = not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    kinds = (
        (ast.Subscript, ast.Attribute)
        if stored or isinstance(node, ast.Subscript | ast.Attribute)
        else (ast.Call,)
    )
    own, types = site.segment(node), site.types(node)
    found: dict[str, int] = {}
    for other in site.scope.operands:
        if (
            isinstance(other, kinds)
            and not _is_called(site, other)
            and has_own_place(site.source, other)
            and compatible(types, site.types(other))
        ):
            text = site.segment(other)
            if text != own and len(text) <= 60 and "\n" not in text:
                found.setdefault(text, abs(other.lineno - node.lineno))
    for rank, text in enumerate(sorted(found, key=lambda text: (found[text], text))[:12]):
        yield site.edit(
            node,
            text,
            "expression",
            (0.22 if isinstance(node, ast.Subscript) else 0.14) / (1 + 0.15 * rank),
        )


def _comparisons_for(site: EditSite, node: ast.Constant) -> Iterator[SourceEdit]:
    """Yield conditions on a variable in place of `True` or `False`."""
    if not isinstance(site.source.parents.get(node), ast.Return | ast.Assign):
        return
    own = [name for name in site.names if not name.isupper() and name not in ("self", "cls")]
    for rank, name in enumerate(own[:10]):
        types = site.names[name]
        forms = [f"not {name}"] if types else [f"not {name}", f"{name} is None"]
        if may_be_number(types) and types != {"bool"}:
            forms = [f"{name} == 0", f"{name} > 0", f"{name} != 0", f"{name} < 0", *forms]
        for turn, form in enumerate(forms):
            yield site.edit(
                node, form, "condition for constant", 0.4 / (1 + 0.2 * rank + 0.2 * turn)
            )


def _fitting_variables(site: EditSite, types: Types, *, but: str) -> list[str]:
    """Return the variables of a compatible type: same type first, then unknown type."""
    fitting = [
        name
        for name, held in site.names.items()
        if name != but and name not in ("self", "cls", "_") and compatible(types, held)
    ]
    near = site.scope.loaded.keys() | site.scope.stored.keys() | set(site.scope.parameters)
    return sorted(
        fitting,
        key=lambda name: (
            not (types & site.names[name]),
            not site.names[name],
            name not in near,
        ),
    )[:16]


def _attributes(site: EditSite, types: Types) -> list[str]:
    if "self" not in site.names:
        return []
    found = [
        (f"self.{name}", held)
        for kind in site.names["self"]
        for name, held in site.facts.attributes.get(kind, {}).items()
    ]
    return [
        text for text, held in found if held and "method" not in held and compatible(types, held)
    ]


def _used_attributes(site: EditSite, node: ast.Attribute) -> list[str]:
    """Return the attributes that the file uses in the same way: called as methods, or not."""
    return list(site.index.methods if _is_called(site, node) else site.index.fields)


def _closeness(near: difflib.SequenceMatcher[str], name: str) -> float:
    near.set_seq1(name)
    return near.ratio()


def _is_called(site: EditSite, node: ast.AST) -> bool:
    above = site.source.parents.get(node)
    return isinstance(above, ast.Call) and above.func is node


def _is_condition(site: EditSite, node: ast.AST) -> bool:
    above = site.source.parents.get(node)
    return isinstance(above, ast.If | ast.While | ast.IfExp) and above.test is node


def _is_replaceable(site: EditSite, node: ast.AST) -> bool:
    above = site.source.parents.get(node)
    return not isinstance(
        above,
        ast.Expr
        | ast.JoinedStr
        | ast.FormattedValue
        | ast.Slice
        | ast.FunctionDef
        | ast.ClassDef
        | ast.withitem,
    )
