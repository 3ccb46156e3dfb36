"""Hot patching of functions in an interpreter that has imported them already. A change that could
have other effects is refused.
"""

from __future__ import annotations

import gc
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from .defaults import ChangedDefaults, changed_defaults
from .segments import SegmentCompiler
from .trace import SourcePaths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Change = CodeType | ChangedDefaults
    """New code, or new defaults, of a function."""

NEW_LOCALS = 0x2
"""Flag of a function's code object; the body of a class does not have it."""


class LiveFunctions:
    """Functions of the repository's files that exist in this interpreter.

    called: (path, first line, name) of those that ran on import. imported: the paths of all files
    that were imported.
    """

    def __init__(
        self, sources: dict[str, str], called: set[tuple[str, int, str]], imported: frozenset[str]
    ) -> None:
        self._called, self._imported = called, imported
        self._segments = SegmentCompiler()
        self._functions: dict[tuple[str, int, str], list[FunctionType]] = {}
        paths = SourcePaths(sources)
        for thing in gc.get_objects():
            if type(thing) is FunctionType:
                path = paths.path(thing.__code__.co_filename)
                if path is not None:
                    self._functions.setdefault(_key(path, thing.__code__), []).append(thing)

    def patch(self, path: str, old: bytes, new: bytes) -> str:
        """Replace the code that differs between *old* and *new*, two texts of the file *path*.

        Returns:
            "patched"; "same": both compile to the same code; "cold": only a fresh import can tell,
            and nothing was changed.
        """
        verdict, planned = self.plan(path, old, new)
        swap(planned)
        return verdict

    def plan(
        self, path: str, old: bytes, new: bytes
    ) -> tuple[str, list[tuple[FunctionType, Change]]]:
        """Return what `patch` would return, and the functions that it would change with their new
        code or defaults.
        """
        if path not in self._imported:
            return "patched", []  # later imports read the changed file
        try:
            before, after = self._segments.compile(path, old, new)
        except (SyntaxError, ValueError, RecursionError):
            return "cold", []
        swaps = _swaps(before, after)
        planned: list[tuple[FunctionType, Change]] = []
        for was, becomes, outer in swaps:
            key = _key(path, was)
            living = self._functions.get(key, [])
            if key in self._called or (outer and not living):
                return self._plan_defaults(path, old, new)
            if any(
                _body(function.__code__) != _body(was)
                or function.__code__.co_freevars != becomes.co_freevars
                for function in living
            ):
                return "cold", []
            planned += [
                (function, becomes.replace(co_filename=function.__code__.co_filename))
                for function in living
            ]
        return "patched" if swaps else "same", planned

    def _plan_defaults(
        self, path: str, old: bytes, new: bytes
    ) -> tuple[str, list[tuple[FunctionType, Change]]]:
        """Return the plan of a change of defaults alone; else "cold"."""
        changed = changed_defaults(old, new)
        key = (path, changed.line, changed.name) if changed is not None else None
        if changed is None or key is None or key in self._called:
            return "cold", []
        living = self._functions.get(key, [])
        return ("patched" if living else "cold"), [(function, changed) for function in living]


def swap(planned: Sequence[tuple[FunctionType, Change]]) -> None:
    """Make the planned changes."""
    for function, change in planned:
        if isinstance(change, CodeType):
            function.__code__ = change
        else:
            change.apply(function)


def _swaps(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType, bool]]:
    """Return (old, new, outermost) for each code object that differs, itself or within. That of a
    module or a class has no function object.
    """
    if _body(old) != _body(new):
        return [(old, new, True)]
    found: list[tuple[CodeType, CodeType, bool]] = []
    for was, becomes in zip(_inner(old), _inner(new)):  # noqa: B905 - Python 3.8; equal bodies have equally many
        deeper = _swaps(was, becomes)
        if deeper and was.co_flags & NEW_LOCALS and deeper[0][0] is not was:
            deeper = [
                (was, becomes, True),
                *((before, after, False) for before, after, _ in deeper),
            ]
        found += deeper
    return found


def _body(code: CodeType) -> tuple[Any, ...]:
    """Return what *code* does, without line numbers and the code objects inside it."""
    constants = tuple(
        "code" if isinstance(value, CodeType) else (type(value).__name__, _text(value))
        for value in code.co_consts
    )
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    return (code.co_code, constants, names, counts, getattr(code, "co_exceptiontable", b""))


def _text(constant: object) -> str:
    """Return the text of a constant. The order of a set may be another in code that was stored."""
    if isinstance(constant, frozenset):
        return repr(sorted(map(repr, constant)))
    return repr(constant)


def _inner(code: CodeType) -> list[CodeType]:
    return [value for value in code.co_consts if isinstance(value, CodeType)]


def _key(path: str, code: CodeType) -> tuple[str, int, str]:
    return path, code.co_firstlineno, code.co_name
