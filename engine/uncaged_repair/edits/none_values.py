"""Edit operators for `None` where a value belongs: a literal, or a variable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from .arguments import called_name
from .edit import SourceEdit
from .edit_site import EditSite
from .texts import is_bare

NO_ATTRIBUTE = re.compile(r"'NoneType' object has no attribute '(\w+)'")
ABLE: Mapping[str, Sequence[str]] = {
    "item assignment": ("{}", "[]"),
    "is not iterable": ("[]", "()", "{}"),
    "is not subscriptable": ("[]", "{}", "''"),
    "has no len": ("[]", "''"),
    "'int'": ("0",),
    "'float'": ("0",),
    "to str": ("''",),
    "'str'": ("''",),
    "'list'": ("[]",),
}
"""Values that can do what an error says `None` cannot."""
LITERALS = {"[]": list, "{}": dict, "set()": set, "''": str}
FAR_BEHIND = 4
"""Rank of the first variable that nothing speaks for, if something speaks for others."""


def values_for_none(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield a literal in place of `None`; first one that could do what `None` could not in the
    failing run.
    """
    if _is_none(site, node):
        for rank, text in enumerate(_fitting_values(site)):
            yield site.edit(node, text, "fitting value for None", 1 / (1 + 0.4 * rank))
        for rank, text in enumerate(("[]", "{}", "0", "''", "False", "True", "set()", "()")):
            yield site.edit(node, text, "value for None", 1 / (1 + 0.4 * rank))


def _fitting_values(site: EditSite) -> list[str]:
    """Return the literals that can do what the errors say `None` cannot."""
    found: list[str] = []
    for _, message in site.facts.errors:
        if "NoneType" not in message:
            continue
        for text, values in ABLE.items():
            found += values if text in message else ()
        if missing := NO_ATTRIBUTE.search(message):
            found += [text for text, kind in LITERALS.items() if hasattr(kind, missing[1])]
    return list(dict.fromkeys(found))


def names_for_none(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield a variable in place of `None`: first the one that is named like the place, then the
    parameters that the function does not use.
    """
    if _is_none(site, node):
        wanted, scope = _name_of_place(site, node), site.scope
        own = [wanted] if wanted in scope.parameters else []
        names = [name for name in dict.fromkeys([*own, *site.names]) if name not in ("self", "cls")]
        likely = [name for name in names if name == wanted] or [
            name for name in names if name in scope.parameters and name not in scope.loaded
        ]
        others = [name for name in names if name not in likely]
        first = FAR_BEHIND if likely else 0
        for rank, name in [*enumerate(likely[:6]), *enumerate(others[:6], first)]:
            yield site.edit(node, name, "name for None", 1 / (1 + 0.3 * rank))


def _name_of_place(site: EditSite, node: ast.AST) -> str:
    """Return the name that *node* is assigned to or passed as; empty if there is none."""
    match site.source.parents.get(node):
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return getattr(target, "attr", getattr(target, "id", ""))
        case ast.keyword(arg=name):
            return name or ""
        case ast.Call(args=arguments) as call if node in arguments:
            names = site.index.parameters(called_name(call))
            place = arguments.index(node)
            return names[place] if place < len(names) else ""
        case _:
            return ""


def _is_none(site: EditSite, node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None and not is_bare(site, node)
