"""Edit operators for strings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from heapq import nsmallest

from .edit import SourceEdit
from .edit_site import EditSite


def strings(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield other strings of the file, those of about the same length first, and common ones."""
    if not isinstance(node, ast.Constant) or is_bare(site, node):
        return
    value = node.value
    if not isinstance(value, str):
        return
    words = (word for word in site.words if word != value)
    near = nsmallest(10, words, key=lambda word: (abs(len(word) - len(value)), word))
    likely = 1.0 if value else 0.7
    common = (text for text in ("", " ", ", ", "\n") if text != value and text not in near)
    for rank, word in enumerate([*near, *common]):
        yield site.edit(node, quoted(site, node, word), "string", likely / (1 + 0.3 * rank))


def quoted(site: EditSite, node: ast.Constant, text: str) -> str:
    """Return *text* as a literal with the quotes of the original."""
    literal = repr(text)
    plain = (
        site.segment(node).startswith('"')
        and '"' not in literal
        and "\\" not in literal
        and literal.startswith("'")
    )
    return f'"{literal[1:-1]}"' if plain else literal


def is_bare(site: EditSite, node: ast.Constant) -> bool:
    """Return whether *node* is a statement of its own, such as a docstring."""
    return isinstance(site.source.parents.get(node), ast.Expr)
