"""Checks of sentence patterns: their syntax, and that each parameter in them is one of the flow.

``(list | show) (the)? files in $(path:wildcard)``: words, choices, optional ones, and parameters.
``$(name:wildcard)`` matches any words, ``$(name:number)`` a number; ``?`` after one makes it
optional. ``(…)*`` and ``(…)+`` repeat; ``\\`` before a mark makes it text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from uncaged_bundles.shapes import Path, ShapeError

MAX_CHARACTERS = 1000
MAX_DEPTH = 16
KINDS = ("wildcard", "number", "word", "string", "path")
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<capture>\$\((?P<inner>[^()]*)\)\??)|(?P<mark>\)[?*+]|[()|])|(?P<word>(?:\\.|[^\s()|$?\\])+)"
)
_CAPTURE = re.compile(r"\$\(\s*([A-Za-z_][A-Za-z0-9_-]*)\s*(?::\s*([A-Za-z]+)\s*)?\)\??")


def check_pattern(pattern: str, parameters: Collection[str], path: Path) -> None:
    """Refuse a pattern that does not parse, matches nothing, or names an unknown parameter; the
    message has the column.
    """
    if len(pattern) > MAX_CHARACTERS:
        raise ShapeError(
            path, f"has {len(pattern)} characters; a pattern has at most {MAX_CHARACTERS}"
        )
    known = {name.lower() for name in parameters}
    # for each open group: whether it has a part that is not optional
    filled = [False]
    for column, kind, text in _tokens(pattern, path):
        if kind == "capture":
            _check_capture(text, known, path, column)
        if kind != "mark":
            filled[-1] = filled[-1] or kind == "word" or not text.endswith("?")
        else:
            problem = _open_or_close(text, filled)
            if problem:
                raise ShapeError(path, f"column {column}: {problem}")
    if len(filled) > 1:
        raise ShapeError(path, f"{len(filled) - 1} '(' without a ')'")
    if not filled[0]:
        raise ShapeError(
            path,
            "matches nothing: at least one word or parameter in it must not be optional",
        )


def _open_or_close(mark: str, filled: list[bool]) -> str | None:
    """Update the open groups by one mark; return what is wrong with it, if anything."""
    if mark == "(":
        filled.append(False)
        return f"groups are nested at most {MAX_DEPTH} deep" if len(filled) > MAX_DEPTH else None
    if not filled[-1] and (mark == "|" or len(filled) > 1):
        return f"there is nothing before this {mark[0]!r}"
    if mark == "|":
        filled[-1] = False
        return None
    if len(filled) == 1:
        return "this ')' closes nothing"
    filled.pop()
    filled[-1] = filled[-1] or mark in (")", ")+")
    return None


def _tokens(pattern: str, path: Path) -> Iterator[tuple[int, str, str]]:
    place = 0
    while place < len(pattern):
        found = _TOKEN.match(pattern, place)
        if found is None:
            raise ShapeError(
                path,
                f"column {place + 1}: {pattern[place]!r} has no meaning here; optional is written (word)?",
            )
        if not found["space"]:
            yield (
                place + 1,
                "capture" if found["capture"] else "word" if found["word"] else "mark",
                found.group(),
            )
        place = found.end()


def _check_capture(text: str, known: Collection[str], path: Path, column: int) -> None:
    found = _CAPTURE.fullmatch(text)
    if found is None:
        raise ShapeError(
            path,
            f"column {column}: {text} is no parameter; write $(name:wildcard) or $(name:number)",
        )
    name, kind = found[1], found[2] or "wildcard"
    if kind not in KINDS:
        raise ShapeError(
            path,
            f"column {column}: {kind!r} is no kind of parameter; there are: {', '.join(KINDS)}",
        )
    if name.lower() not in known:
        raise ShapeError(
            path,
            f"column {column}: there is no parameter {name!r}; there are: {', '.join(sorted(known)) or 'none'}",
        )
