"""Byte spans of syntax trees."""

from __future__ import annotations

import ast

import pytest
from uncaged_repair.edits.spans import (
    UnreadableSource,
    blocks,
    header_lines,
    parses,
    read_source,
)

TEXT = """\
import os


def größe(straße, *, höhe=1):  # ü
    if straße and (höhe >
            2):
        return f"{straße!r} ist {höhe + 1} m", ["ä", 'ö']
    s = '''mehr
als eine Zeile'''
    return None
"""
FORMS = {
    "plain": TEXT.encode(),
    "carriage returns": TEXT.replace("\n", "\r\n").encode(),
    "old line ends": TEXT.replace("\n", "\r").encode(),
    "byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "latin-1": b"# -*- coding: latin-1 -*-\n" + TEXT.encode("latin-1"),
    "tabs": TEXT.replace("    ", "\t").encode(),
    "form feed": b"\x0c\n" + TEXT.encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_span_of_an_expression_holds_exactly_that_expression(form: str) -> None:
    """Whatever the line ends, the encoding and the letters before it: the bytes of a span parse to
    the node itself.
    """
    source = read_source("x.py", FORMS[form])
    seen = 0
    for node in ast.walk(source.tree):
        inside_text = any(isinstance(above, ast.JoinedStr) for above in source.ancestors(node))
        if (
            isinstance(node, ast.expr)
            and not inside_text
            and not isinstance(getattr(node, "ctx", ast.Load()), ast.Store)
        ):
            again = ast.parse(f"({source.segment(node)}\n)", mode="eval").body
            assert ast.dump(again) == ast.dump(node)
            seen += 1
    assert seen == 13


@pytest.mark.parametrize("form", FORMS)
def test_encoding_the_data_gives_the_file_back(form: str) -> None:
    """A file to which nothing is done is the same to the byte."""
    source = read_source("x.py", FORMS[form])
    assert source.encode(source.data) == FORMS[form]


@pytest.mark.parametrize(
    "raw", [b"def f(:\n", b"\x00\x01\xff", b"x = '\xff'\n", b"# coding: nonsense\n", b"(" * 3000]
)
def test_what_is_no_python_is_refused_with_its_path(raw: bytes) -> None:
    """Binary files, wrong encodings and syntax errors are one kind of error, and it names the
    file.
    """
    with pytest.raises(UnreadableSource, match=r"odd\.py"):
        read_source("odd.py", raw)


def test_the_header_of_a_compound_statement_ends_before_its_body() -> None:
    source = read_source("x.py", b"@decorate\ndef f(\n    a,\n):\n    return a\n")
    assert header_lines(source.tree.body[0]) == (1, 4)


def test_every_block_of_a_statement_is_found() -> None:
    source = read_source("x.py", b"try:\n    a\nexcept B:\n    c\nelse:\n    d\nfinally:\n    e\n")
    assert [ast.unparse(block[0]) for block in blocks(source.tree.body[0])] == ["a", "d", "e", "c"]


def test_indentation_and_line_ends_are_those_of_the_file() -> None:
    source = read_source("x.py", b"if x:\r\n\ty = 1\r\n")
    statement = source.tree.body[0]
    assert isinstance(statement, ast.If)
    assert (source.indent(statement.body[0]), source.newline) == ("\t", "\r\n")


def test_text_that_parses_differs_from_text_that_does_not() -> None:
    assert parses("ä = 1\n".encode())
    assert not parses(b"x = = 1\n")
