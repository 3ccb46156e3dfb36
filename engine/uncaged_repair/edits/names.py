"""Edit operators for names: another variable, another attribute, a variable in place of a constant
or a call, and the reverse.
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Iterator
from functools import lru_cache

from .edit import SourceEdit
from .edit_site import NO_DATA, EditSite
from .facts import MISFIT, UNKNOWN, Types, compatible, number_fit
from .module_index import has_own_place

BUILTINS = frozenset(dir(builtins))
FORMER_BUILTINS = {
    "basestring": "str",
    "long": "int",
    "raw_input": "input",
    "unichr": "chr",
    "unicode": "str",
    "xrange": "range",
}
"""Names of Python 2, with those that replaced them."""


def variables(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield other variables to use; those that were seen with the same type first."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
        yield from _other_variables(site, node, "variable")


def targets(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield other variables to assign to; those that were seen with the same type first."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and site.function is not None:
        yield from _other_variables(site, node, "target")


def _other_variables(site: EditSite, node: ast.Name, kind: str) -> Iterator[SourceEdit]:
    if node.id not in site.names or _is_called(site, node):
        return
    types = site.names[node.id]
    for rank, name in enumerate(_fitting_variables(site, types, but=node.id)):
        fit = 1.0 if compatible(types, site.names[name]) else MISFIT
        yield site.edit(node, name, kind, fit / (1 + 0.2 * rank))


def variable_attributes(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield an attribute of `self` in place of a variable."""
    if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store):
        return
    if node.id in site.names and not _is_called(site, node):
        for rank, attribute in enumerate(_attributes(site, site.names[node.id])[:8]):
            yield site.edit(node, attribute, "attribute for variable", 1 / (1 + 0.3 * rank))


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
    near = (
        [FORMER_BUILTINS[node.id]]
        if node.id in FORMER_BUILTINS
        else difflib.get_close_matches(node.id, known, n=6, cutoff=0.5)
    )
    for rank, name in enumerate(near):
        yield site.edit(node, name, "unknown name", 1.0 / (1 + 0.1 * rank))
    for prefix in ("self", "cls"):
        if prefix in site.names:
            yield site.edit(node, f"{prefix}.{node.id}", "unknown name", 0.95)


def names_for_attributes(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield a plain name in place of an attribute of a name that the failing run could not find, or
    of a module that has no such attribute: the attribute's own name, else the nearest.
    """
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return
    base, name = node.value.id, node.attr
    unknown = (f"name '{base}'", f"module '{base}' has no attribute '{name}'")
    if not any(text in message for _, message in site.facts.errors for text in unknown):
        return
    found = {*site.names, *site.functions, *site.index.objects, *BUILTINS} - {base}
    known = sorted(found)
    begins = [other for other in known if len(other) > 2 and name.startswith(other)]
    near = difflib.get_close_matches(name, known, n=4, cutoff=0.5)
    ordered = [*sorted(begins, key=len, reverse=True), *near]
    for rank, other in enumerate(dict.fromkeys(ordered)):
        yield site.edit(node, other, "name for attribute", 1 / (1 + 0.3 * rank))


def similar_names(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield functions, classes and other names of the file that are spelled alike."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return
    data = node.id in site.names
    for rank, name in enumerate(site.index.similar(node.id)):
        if data == (name in site.names):
            yield site.edit(node, name, "similar name", 1 / (1 + 0.3 * rank))


def attributes(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield another attribute of the same object, or a variable."""
    if not isinstance(node, ast.Attribute):
        return
    base, types = site.operand(node.value), site.types(node)
    called = _is_called(site, node)
    known = site.facts.attributes
    owners = [kind for kind in sorted(site.types(node.value)) if kind in known]
    found = {
        name: held
        for owner in owners
        for name, held in known[owner].items()
        if name != node.attr and not name.startswith("__")
    }
    if not owners:
        found = {name: UNKNOWN for name in _used_attributes(site, node) if name != node.attr}
    fits = {
        name: compatible(types, held) and ("method" in held) == (called and bool(owners))
        for name, held in found.items()
    }
    order = sorted(fits, key=lambda name: (not fits[name], -_closeness(name, node.attr), name))
    for rank, name in enumerate(order[:10]):
        likely = (1.0 if fits[name] else MISFIT) / (1 + 0.2 * rank)
        yield site.edit(node, f"{base}.{name}", "method" if called else "attribute", likely)
    if called or isinstance(node.ctx, ast.Store):
        return
    for rank, name in enumerate(_fitting_variables(site, types, but="")[:6]):
        likely = 1.0 if types & site.names[name] else 0.5
        yield site.edit(node, name, "variable for attribute", likely / (1 + 0.2 * rank))


def substitutes(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield a variable in place of a constant, a call, an item or an operation."""
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float | bool)
        and _is_replaceable(site, node)
    ):
        condition = _is_condition(site, node)
        for rank, name in enumerate(
            _fitting_variables(site, UNKNOWN if condition else site.types(node), but="")[:10]
        ):
            kind = "name for condition" if condition else "name for constant"
            yield site.edit(node, name, kind, 1 / (1 + 0.25 * rank))
        if isinstance(node.value, bool):
            yield from _comparisons_for(site, node)
    elif isinstance(node, ast.Call | ast.Subscript | ast.BinOp | ast.IfExp) and isinstance(
        getattr(node, "ctx", ast.Load()), ast.Load
    ):
        if not _is_replaceable(site, node):
            return
        inside = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        for rank, name in enumerate(_fitting_variables(site, site.types(node), but="")[:10]):
            likely = 1.0 if name in inside else 0.7
            yield site.edit(node, name, "name for expression", likely / (1 + 0.2 * rank))


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
    found: dict[str, tuple[bool, int]] = {}
    for other in site.scope.operands:
        if (
            isinstance(other, kinds)
            and not _is_called(site, other)
            and has_own_place(site.source, other)
        ):
            text = site.segment(other)
            if text != own and len(text) <= 60 and "\n" not in text:
                far = not compatible(types, site.types(other))
                found.setdefault(text, (far, abs(other.lineno - node.lineno)))
    for rank, text in enumerate(sorted(found, key=lambda text: (found[text], text))[:12]):
        yield site.edit(node, text, "expression", 1 / (1 + 0.15 * rank))


def _comparisons_for(site: EditSite, node: ast.Constant) -> Iterator[SourceEdit]:
    """Yield conditions on a variable in place of `True` or `False`."""
    if not isinstance(site.source.parents.get(node), ast.Return | ast.Assign):
        return
    own = [name for name in site.names if not name.isupper() and name not in ("self", "cls")]
    for rank, name in enumerate(own[:10]):
        types = site.names[name]
        forms = [f"not {name}", f"{name} is None"]
        compared = [f"{name} == 0", f"{name} > 0", f"{name} != 0", f"{name} < 0"]
        forms = [*compared, *forms] if number_fit(types) > MISFIT else [*forms, *compared]
        for turn, form in enumerate(forms):
            yield site.edit(node, form, "condition for constant", 1 / (1 + 0.2 * rank + 0.2 * turn))


def _fitting_variables(site: EditSite, types: Types, *, but: str) -> list[str]:
    """Return the variables: same type first, then unknown type, then others."""
    fitting = [name for name in site.names if name != but and name not in ("self", "cls", "_")]
    scope = site.scope
    return sorted(
        fitting,
        key=lambda name: (
            not compatible(types, site.names[name]),
            not (types & site.names[name]),
            not site.names[name],
            name not in scope.loaded and name not in scope.stored and name not in scope.parameters,
        ),
    )[:16]


def _attributes(site: EditSite, types: Types) -> list[str]:
    if "self" not in site.names:
        return []
    found = [
        (f"self.{name}", held)
        for kind in sorted(site.names["self"])
        for name, held in site.facts.attributes.get(kind, {}).items()
    ]
    data = [(text, held) for text, held in found if held and not held & NO_DATA]
    return [text for text, held in sorted(data, key=lambda item: not compatible(types, item[1]))]


def _used_attributes(site: EditSite, node: ast.Attribute) -> list[str]:
    """Return the attributes that the file uses in the same way: called as methods, or not."""
    return list(site.index.methods if _is_called(site, node) else site.index.fields)


@lru_cache(maxsize=1 << 14)
def _closeness(name: str, other: str) -> float:
    return difflib.SequenceMatcher(None, name, other).ratio()


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
