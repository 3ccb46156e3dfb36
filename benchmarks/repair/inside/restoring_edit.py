"""Script for the product's interpreter: whether one edit of the repair turns the broken file into
the released one. Prints JSON.

Usage: python restoring_edit.py FILE BROKEN RELEASED ERRORS (paths: two texts of FILE, a JSON list)
"""

from __future__ import annotations

import ast
import json
import re
import sys
from difflib import SequenceMatcher
from pathlib import Path

from uncaged_repair.edits.candidates import candidates
from uncaged_repair.edits.facts import ValueFacts
from uncaged_repair.edits.spans import read_source

COMMENT = re.compile(rb"#[^\n]*")
SIGNS = b" \t\r\n()'\",\\"


def main(file: str, broken: bytes, released: bytes, errors: list[list[str]]) -> dict[str, object]:
    """Return the number of candidates of the changed function, and the kind and rank of the one
    that restores the released syntax tree.
    """
    source = read_source(file, broken)
    wanted = read_source(file, released)
    tree, bare = ast.dump(wanted.tree), _bare(wanted.data)
    facts = ValueFacts(errors=tuple((kind, message) for kind, message in errors))
    lines = _lines_around(source.tree, _changed_lines(broken, released))
    every = list(candidates(source, dict.fromkeys(lines, 1.0), facts))
    for rank, (_, edit) in enumerate(every, 1):
        result = edit.apply(source.data)
        if _bare(result) == bare and _tree(result) == tree:
            return {"candidates": len(every), "rank": rank, "kind": edit.kind}
    return {"candidates": len(every), "rank": None, "kind": None}


def _changed_lines(broken: bytes, released: bytes) -> set[int]:
    """Return the lines of *broken* that differ; those around a place where only lines lack."""
    before, after = broken.splitlines(), released.splitlines()
    found: set[int] = set()
    for tag, low, high, _, _ in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            found |= set(range(low + 1, high + 1)) or {low, low + 1}
    return found & set(range(1, len(before) + 1))


def _lines_around(tree: ast.Module, changed: set[int]) -> set[int]:
    """Return all lines of the innermost functions around *changed*; outside of functions, all lines
    that are in none.
    """
    spans = [
        (min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.end_lineno or 0)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    inside = {line for low, high in spans for line in range(low, high + 1)}
    last = max((getattr(node, "end_lineno", 0) for node in tree.body), default=0)
    found: set[int] = set()
    for line in changed:
        around = [(low, high) for low, high in spans if low <= line <= high]
        if around:
            low, high = max(around)
            found |= set(range(low, high + 1))
        else:
            found |= set(range(1, last + 1)) - inside
    return found


def _bare(data: bytes) -> bytes:
    """Return what decides whether two texts may have equal trees, without parentheses, quotes,
    spaces and comments.
    """
    return COMMENT.sub(b"", data).translate(None, SIGNS)


def _tree(data: bytes) -> str | None:
    try:
        return ast.dump(ast.parse(data))
    except SyntaxError:
        return None


if __name__ == "__main__":
    texts = [Path(path).read_bytes() for path in sys.argv[2:]]
    sys.stdout.write(json.dumps(main(sys.argv[1], texts[0], texts[1], json.loads(texts[2]))))
