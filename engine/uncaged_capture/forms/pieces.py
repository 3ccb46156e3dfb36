"""Passages of a shell command in which values may be, by how they are quoted, and whose code they
are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from uncaged_bundles.builders.inference.bash import node_text, nodes, programs_started, unquoted
from uncaged_bundles.records import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Piece", "descendants", "pieces_of"]

_CODE_PROGRAMS = re.compile(
    r"(?:(?:ba|da|z|k)?sh|eval|ssh|su|awk|gawk|mawk|sed|jq|yq|python[\d.]*|perl|ruby|node|php|lua|sqlite3|psql|mysql|tclsh|bc|make)"
)
_EXPANSIONS = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "process_substitution"}
)
_SKIPPED = frozenset(
    {"comment", "variable_name", "heredoc_start", "heredoc_end", "file_descriptor"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A passage of a command. form: how its text is quoted. code: the program whose code it is.
    leading: it begins a word. is_data: it is text of a file of a data format.
    """

    start: int
    end: int
    form: str
    code: str = ""
    leading: bool = False
    is_data: bool = False


def pieces_of(text: str) -> Iterator[Piece]:
    root = next(nodes(text))
    yield from _within(root, code="", fixed=False, leading=False)


def _within(node: Node, *, code: str, fixed: bool, leading: bool) -> Iterator[Piece]:
    if node.type in _SKIPPED or node.type == "command_name":
        return
    start, end = node.start_byte, node.end_byte
    form = "fixed" if fixed else ""
    match node.type:
        case "command":
            yield from _in_command(node, fixed=fixed)
        case "word" | "number" | "regex" | "extglob_pattern":
            yield Piece(start=start, end=end, form=form or "bare", code=code, leading=leading)
        case "raw_string":
            yield Piece(
                start=start + 1, end=end - 1, form=form or "single", code=code, leading=leading
            )
        case "ansi_c_string" | "brace_expression":
            yield Piece(start=start, end=end, form="fixed", code=code)
        case "string":
            yield from _in_string(node, form or "double", code, leading=leading)
        case "arithmetic_expansion":
            yield from _in_calculation(node)
        case "heredoc_redirect":
            yield from _in_document(node, code, fixed=fixed)
        case "expansion":
            yield from _in_expansion(node, fixed=fixed)
        case _:
            for number, child in enumerate(node.children):
                begins = leading and number == 0
                yield from _within(child, code=code, fixed=fixed, leading=begins)


def _in_expansion(node: Node, *, fixed: bool) -> Iterator[Piece]:
    """Yield the texts within `${name%text}`; numbers within `${name:0:3}` are calculated."""
    marks = {child.type for child in node.children if not child.is_named}
    for child in node.children:
        if ":" in marks and child.type == "number":
            yield Piece(start=child.start_byte, end=child.end_byte, form="arithmetic")
        elif child.is_named:
            yield from _within(child, code="", fixed=fixed, leading=False)


def _in_calculation(node: Node) -> Iterator[Piece]:
    for child in descendants(node):
        if child.type == "number":
            yield Piece(start=child.start_byte, end=child.end_byte, form="arithmetic")


def _in_command(node: Node, *, fixed: bool) -> Iterator[Piece]:
    name = node.child_by_field_name("name")
    program = "" if name is None else unquoted(name).rpartition("/")[2]
    code = program if _CODE_PROGRAMS.fullmatch(program) else ""
    inner = (
        () if name is None else tuple(programs_started(tuple(map(unquoted, node.named_children))))
    )
    nested = next((one for one in inner[1:] if _CODE_PROGRAMS.fullmatch(one)), "")
    arguments = {child.id for child in node.children_by_field_name("argument")}
    is_next = False
    script_found = False
    for child in node.children:
        if child.id not in arguments:
            yield from _within(child, code=code, fixed=fixed, leading=False)
            continue
        word = unquoted(child)
        is_option = word.startswith("-") and word != "-"
        is_script = bool(code) and (is_next or (not is_option and not script_found))
        if is_script and code not in ("ssh", "make"):
            script_found = True
        if nested:
            yield from _within(child, code=nested, fixed=fixed, leading=not is_option)
            continue
        if code.startswith(("python", "perl", "ruby", "node", "php")) and not is_next:
            is_script = False  # the name of a file
        is_next = (
            bool(code)
            and re.fullmatch(r"-\w*[cef]|--(?:expression|eval|command|source)", word) is not None
        )
        if is_next and code in ("sqlite3", "jq", "make"):
            is_next = False
        yield from _within(
            child, code=code if is_script else "", fixed=fixed, leading=not is_option
        )


def _in_string(node: Node, form: str, code: str, *, leading: bool) -> Iterator[Piece]:
    at = node.start_byte + 1
    for child in node.children:
        if child.type in _EXPANSIONS or child.type == "arithmetic_expansion":
            if at < child.start_byte:
                yield Piece(start=at, end=child.start_byte, form=form, code=code, leading=leading)
            yield from _within(child, code=code, fixed=False, leading=False)
            at, leading = child.end_byte, False
    if at < node.end_byte - 1:
        yield Piece(start=at, end=node.end_byte - 1, form=form, code=code, leading=leading)


def _in_document(node: Node, code: str, *, fixed: bool) -> Iterator[Piece]:
    """Yield the text of a here document. A quoted one has no expansions, so nothing can be put into
    it.
    """
    start = next((node_text(child) for child in node.children if child.type == "heredoc_start"), "")
    is_fixed = fixed or start.startswith(("'", '"', "\\"))
    owner = node.parent
    command = owner.child_by_field_name("body") if owner is not None else None
    name = command.child_by_field_name("name") if command is not None else None
    program = "" if name is None else unquoted(name).rpartition("/")[2]
    own = program if _CODE_PROGRAMS.fullmatch(program) else code
    for child in node.children:
        if child.type == "heredoc_body":
            form = "fixed" if is_fixed else "document"
            yield Piece(start=child.start_byte, end=child.end_byte, form=form, code=own)
        elif child.type not in _SKIPPED:
            yield from _within(child, code="", fixed=fixed, leading=True)


def descendants(node: Node) -> Iterator[Node]:
    for child in node.children:
        yield child
        yield from descendants(child)
