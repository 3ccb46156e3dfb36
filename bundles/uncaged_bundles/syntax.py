"""Parsing of Python text, safe in several threads of execution."""

from __future__ import annotations

import ast
import os
import threading
import warnings

__all__ = ["parse_expression", "parse_module"]

# CPython 3.11 counts the depth of the tree it builds in one place for all threads, and raises a
# SystemError if another one parses meanwhile; and `catch_warnings` changes the process's filters.
_PARSING = threading.RLock()
# a child that is forked while another thread parses would wait for it without end
os.register_at_fork(
    before=_PARSING.acquire, after_in_parent=_PARSING.release, after_in_child=_PARSING.release
)


def parse_module(source: str | bytes) -> ast.Module:
    """Return the tree of a module's text. What only warns, such as an invalid escape, is accepted.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse`.
    """
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def parse_expression(source: str) -> ast.Expression:
    """Return the tree of an expression's text; otherwise as `parse_module`."""
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, mode="eval")
