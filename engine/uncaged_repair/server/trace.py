"""Tracing of tests: the executed lines of the repository's own files and, on request, the types of
their variables.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING

from .wire import Message

if TYPE_CHECKING:
    from typing import Any

LOOKS_PER_CODE = 12
LOOKS_PER_CLASS = 6
MAX_ATTRIBUTES = 100
CALLS_WITHOUT_NEWS = 500
"""After so many calls of a function without a new line of its file, a passing test's calls of it
are no longer traced.
"""
SETTLED_CALLS = 10_000
"""After so many calls of such functions, and none of another function of the repository, nothing
of a passing test is traced any more: tracing costs each call of a library, too.
"""


class SourcePaths:
    """Paths of code objects. sources: absolute path to path in the repository."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources
        self._known: dict[str, str | None] = {}

    def path(self, filename: str) -> str | None:
        """Return the repository's path of a code object's file; None for any other file."""
        if filename not in self._known:
            self._known[filename] = self._sources.get(str(Path(filename).absolute()))
        return self._known[filename]


class LineTracer:
    """Tracer of lines. It uses `sys.monitoring` where that exists and no types are wanted, else
    `sys.settrace`.
    """

    def __init__(
        self, sources: dict[str, str], types: bool, only: dict[str, list[int]] | None
    ) -> None:
        """Prepare the tracing. only: the lines of each path that matter; None for all."""
        self._types = TypeTracer() if types else None
        self._only = (
            None if only is None else {path: frozenset(lines) for path, lines in only.items()}
        )
        self._paths = SourcePaths(sources)
        self._unwanted: set[str] = set()
        self._seen: dict[str, set[int]] = {}
        self._calls: dict[int, list[Any]] = {}
        self._settled: set[int] = set()
        self._settled_calls = 0
        self._monitoring: Any = getattr(sys, "monitoring", None) if not types else None

    def start(self) -> None:
        self._seen, self._calls, self._settled = {}, {}, set()
        self._settled_calls = 0
        if self._types is not None:
            self._types = TypeTracer()
        if self._monitoring is not None:
            self._start_monitoring()
        else:
            threading.settrace(self._call)
            sys.settrace(self._call)

    def stop(self) -> None:
        if self._monitoring is not None:
            self._monitoring.set_events(self._monitoring.COVERAGE_ID, 0)
        else:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type, unused-ignore]

    def look(self, frame: FrameType) -> None:
        """Record the types of the variables of *frame*, if it is one of the repository's and types
        are wanted.
        """
        path = self._paths.path(frame.f_code.co_filename)
        if path is not None and self._types is not None:
            self._types.look(frame, path)

    def report(self) -> Message:
        """Return what was recorded, as JSON values."""
        lines = {}
        for path, seen in self._seen.items():
            kept = sorted(seen if self._only is None else seen & self._only.get(path, frozenset()))
            if kept:
                lines[path] = kept
        return {"lines": lines, **({} if self._types is None else self._types.report())}

    def _wanted(self, code: CodeType) -> str | None:
        path = self._paths.path(code.co_filename)
        return path if path is not None and (self._only is None or path in self._only) else None

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG002 - the shape of a trace function
        code = frame.f_code
        if code.co_filename in self._unwanted:  # most calls
            return None
        if id(code) in self._settled:
            self._settled_calls += 1
            if self._settled_calls == SETTLED_CALLS:
                self.stop()
            return None
        path = self._wanted(code)
        if path is None:
            self._unwanted.add(code.co_filename)
            return None
        self._settled_calls = 0
        seen = self._seen.setdefault(path, set())
        if self._only is not None:
            self._count(code, len(seen))
        add = seen.add
        add(frame.f_lineno)
        types = self._types

        def local(frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG001 - the same
            if event == "line":
                add(frame.f_lineno)
            elif event == "return" and types is not None:
                types.look(frame, path)
            return local

        return local

    def _count(self, code: CodeType, size: int) -> None:
        """Count a call of *code*. If the last ones ran no new line of its file, of which *size* are
        known, later ones are not traced.
        """
        # a code object is expensive to hash; the entry keeps it, so that its id stays its own
        entry = self._calls.setdefault(id(code), [code, 0, 0])
        entry[2] = entry[2] + 1 if entry[1] == size else 0
        entry[1] = size
        if entry[2] >= CALLS_WITHOUT_NEWS:
            self._settled.add(id(code))

    def _start_monitoring(self) -> None:
        monitoring = self._monitoring
        tool, events = monitoring.COVERAGE_ID, monitoring.events
        if monitoring.get_tool(tool) is None:
            monitoring.use_tool_id(tool, "uncaged-repair")

        def started(code: CodeType, offset: int) -> object:  # noqa: ARG001 - the shape of a callback
            path = self._wanted(code)
            if path is not None:
                monitoring.set_local_events(tool, code, events.LINE)
                self._seen.setdefault(path, set()).add(code.co_firstlineno)
            return monitoring.DISABLE

        def lined(code: CodeType, line: int) -> object:
            path = self._wanted(code)
            if path is not None:
                self._seen.setdefault(path, set()).add(line)
            return monitoring.DISABLE

        monitoring.register_callback(tool, events.PY_START, started)
        monitoring.register_callback(tool, events.LINE, lined)
        monitoring.set_events(tool, events.PY_START)
        monitoring.restart_events()


class TypeTracer:
    """Tracer of the bare type names of variables and attributes. It samples each code object and
    class a few times.
    """

    def __init__(self) -> None:
        self._looks: dict[CodeType, int] = {}
        self._locals: dict[tuple[str, int, str], set[str]] = {}
        self._attributes: dict[str, dict[str, set[str]]] = {}
        self._classes: dict[type, int] = {}

    def look(self, frame: FrameType, path: str) -> None:
        code = frame.f_code
        looks = self._looks[code] = self._looks.get(code, 0) + 1
        if looks > LOOKS_PER_CODE or code.co_name == "<module>":
            return
        for name, value in frame.f_locals.items():
            if name.isidentifier():
                kind = type(value)
                self._locals.setdefault((path, code.co_firstlineno, name), set()).add(kind.__name__)
                self._look_inside(kind, value)

    def report(self) -> Message:
        held = [
            [path, line, name, sorted(types)] for (path, line, name), types in self._locals.items()
        ]
        attributes = {
            name: {key: sorted(types) for key, types in found.items()}
            for name, found in self._attributes.items()
        }
        return {"locals": held, "attributes": attributes}

    def _look_inside(self, kind: type, value: object) -> None:
        seen = self._classes[kind] = self._classes.get(kind, 0) + 1
        inner = getattr(value, "__dict__", None) if seen <= LOOKS_PER_CLASS else None
        if (
            not isinstance(inner, dict)
            or isinstance(value, (type, FunctionType))
            or len(inner) > MAX_ATTRIBUTES
        ):
            return
        found = self._attributes.setdefault(kind.__name__, {})
        for name, held in list(inner.items()):
            found.setdefault(str(name), set()).add(type(held).__name__)
        for name, held in list(vars(kind).items()):
            if isinstance(held, (FunctionType, classmethod, staticmethod)):
                found.setdefault(name, set()).add("method")
            elif isinstance(held, property):
                found.setdefault(name, set())


class CallTracer:
    """Tracer of the repository's functions that run while its tests are collected: their results
    are not computed again.
    """

    def __init__(self, sources: dict[str, str]) -> None:
        self._paths = SourcePaths(sources)
        self._unwanted: set[str] = set()
        self._codes: set[CodeType] = set()

    def start(self) -> None:
        sys.settrace(self._call)

    def stop(self) -> None:
        sys.settrace(None)

    def keys(self) -> set[tuple[str, int, str]]:
        """Return (path in the repository, first line, name) of each."""
        return {
            (str(self._paths.path(code.co_filename)), code.co_firstlineno, code.co_name)
            for code in self._codes
            if code.co_name != "<module>"
        }

    def _call(self, frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG002 - the shape of a trace function
        code = frame.f_code
        if code.co_filename in self._unwanted:  # most calls, so this comes first
            return
        if self._paths.path(code.co_filename) is None:
            self._unwanted.add(code.co_filename)
        else:
            self._codes.add(code)
