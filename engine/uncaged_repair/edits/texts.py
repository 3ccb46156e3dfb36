"""Edit operators for strings: those of the file, and those that resemble a text which the failing
test shows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import get_close_matches
from heapq import nsmallest

from .edit import SourceEdit
from .edit_site import EditSite

COMMON = ("", " ", ", ", "\n")
LEAST_SHOWN = 2


def strings(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield other strings of the file, those of about the same length first, and common ones."""
    if not isinstance(node, ast.Constant) or is_bare(site, node):
        return
    value = node.value
    if not isinstance(value, str | bytes):
        return
    words = [word for word in _words_like(site, value) if word != value]
    near = nsmallest(10, words, key=lambda word: (abs(len(word) - len(value)), _decoded(word)))
    likely = 1.0 if value else 0.7
    common = (text for text in COMMON if text != value and text not in near)
    for rank, word in enumerate([*near, *(common if isinstance(value, str) else [b""])]):
        yield site.edit(node, quoted(site, node, word), "string", likely / (1 + 0.3 * rank))


def shown_strings(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield replacements for a string that the messages of the failing tests show: the empty one,
    those of the file that resemble it, and the same words in other letters.
    """
    if not isinstance(node, ast.Constant) or is_bare(site, node):
        return
    value = node.value
    if not isinstance(value, str | bytes) or not _is_shown(site, value):
        return
    text = _decoded(value)
    words = [_decoded(word) for word in _words_like(site, value)]
    alike = get_close_matches(text, [word for word in words if word != text], n=4, cutoff=0.5)
    letters = [text.lower(), text.capitalize(), text.title(), text.upper()]
    found = [other for other in dict.fromkeys(["", *alike, *letters]) if other != text]
    for rank, other in enumerate(found):
        literal = other if isinstance(value, str) else other.encode("latin-1", "replace")
        weight = 1 / (1 + 0.3 * rank)
        yield site.edit(node, quoted(site, node, literal), "string of the result", weight)


def _decoded(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("latin-1")


def _words_like(site: EditSite, value: str | bytes) -> list[str | bytes]:
    """Return the short strings of the file that have the type of *value*."""
    return [word for word in site.words if isinstance(word, type(value))]


def _is_shown(site: EditSite, value: str | bytes) -> bool:
    text = repr(value)[1:-1] if isinstance(value, str) else repr(value)[2:-1]
    own = len(text) >= LEAST_SHOWN and not text.isspace()
    return own and any(text in message for _, message in site.facts.errors)


def quoted(site: EditSite, node: ast.Constant, text: str | bytes) -> str:
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
