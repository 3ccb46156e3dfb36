"""Pytest plugin that records the arguments of calls of the functions in `UNCAGED_RECORD`, pickled
at the start of each call. It runs in a library's own environment and imports nothing of ours.
"""

from __future__ import annotations

import io
import json
import marshal
import os
import pickle
import re
import sys
import threading
from importlib import import_module
from types import CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

MAX_CALLS = 300
MAX_TRIES = 5000
MAX_BYTES = 200_000
LOCKS = (type(threading.Lock()), type(threading.RLock()))


class Recorder:
    """Profile function. wanted: (path, qualified name) of each function."""

    def __init__(self, wanted: set[tuple[str, str]]) -> None:
        self.wanted = wanted
        self.names = {name.rpartition(".")[2] for _, name in wanted}
        self.calls: dict[tuple[str, str, bytes], None] = {}
        self.count: dict[str, int] = {}
        self.tries: dict[str, int] = {}
        self.unreadable = 0
        self._most = max(10, MAX_CALLS // max(1, len(wanted)))
        self._busy = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_name not in self.names or self._busy:
            return
        name = _qualified_name(code)
        if (os.path.realpath(code.co_filename), name) not in self.wanted or not _begins(frame):
            return
        self.tries[name] = self.tries.get(name, 0) + 1
        if self.tries[name] > MAX_TRIES or self.count.get(name, 0) >= self._most:
            return
        self._busy = True
        try:
            data = dump(_arguments(frame))
        except Exception:  # arguments of any kind, with any code of their own
            self.unreadable += 1
            return
        finally:
            self._busy = False
        call = (str(frame.f_globals.get("__name__")), name, data)
        if len(data) <= MAX_BYTES and call not in self.calls:
            self.calls[call] = None
            self.count[name] = self.count.get(name, 0) + 1

    def write(self, path: str) -> None:
        with open(f"{path}.unreadable", "w") as file:  # noqa: PTH123 - a plugin stays with what every Python has
            file.write(str(self.unreadable))
        with open(path, "wb") as file:  # noqa: PTH123 - a plugin stays with what every Python has
            pickle.dump({"calls": list(self.calls), "path": sys.path}, file)


class _Pickler(pickle.Pickler):
    """Pickler that also writes functions without a name to import, by their code."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType):
            return import_module, (obj.__name__,)
        if isinstance(obj, LOCKS):
            return threading.RLock, ()
        if isinstance(obj, re.Match):
            return match_again, (obj.re, obj.string, obj.pos, obj.endpos, obj.span())
        if not isinstance(obj, FunctionType) or _importable(obj):
            return NotImplemented
        cells = tuple(cell.cell_contents for cell in obj.__closure__ or ())
        fields = (obj.__module__, obj.__name__, obj.__defaults__, obj.__kwdefaults__)
        return rebuild, (marshal.dumps(obj.__code__), cells, fields)


def dump(value: object) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


def match_again(
    pattern: re.Pattern[Any], text: Any, position: int, end: int, span: tuple[int, int]
) -> re.Match[Any]:
    """Return the match of *pattern* at *span*."""
    found = (
        pattern.search(text, position, end),
        pattern.match(text, span[0], end),
        pattern.fullmatch(text, position, end),
    )
    return next(match for match in found if match is not None and match.span() == span)


def rebuild(code: bytes, cells: tuple[Any, ...], fields: tuple[Any, ...]) -> FunctionType:
    """Return the function that was pickled by its code."""
    module, name, defaults, kwdefaults = fields
    closure = tuple(CellType(value) for value in cells)
    own = marshal.loads(code)  # noqa: S302 - written by this module, on this machine
    function = FunctionType(own, vars(import_module(module)), name, defaults, closure)
    function.__kwdefaults__ = kwdefaults
    function.__module__ = module
    return function


def pytest_configure() -> None:
    global _recorder  # noqa: PLW0603 - pytest's hooks share no other state
    wanted = json.loads(os.environ["UNCAGED_RECORD"])
    _recorder = Recorder({(os.path.realpath(path), name) for path, name in wanted})
    threading.setprofile(_recorder)
    sys.setprofile(_recorder)


def pytest_unconfigure() -> None:
    sys.setprofile(None)
    threading.setprofile(None)
    if _recorder is not None:
        _recorder.write(os.environ["UNCAGED_RECORDED"])


_recorder: Recorder | None = None


def _begins(frame: FrameType) -> bool:
    """Return whether the call is not the continuation of a generator: a `RESUME 0`."""
    at = frame.f_lasti
    return at < 0 or frame.f_code.co_code[at + 1] == 0


def _arguments(frame: FrameType) -> tuple[list[Any], dict[str, Any]]:
    code, values = frame.f_code, frame.f_locals
    names, plain = code.co_varnames, code.co_argcount
    position = plain + code.co_kwonlyargcount
    positional = [values[name] for name in names[:plain]]
    keywords = {name: values[name] for name in names[plain:position]}
    if code.co_flags & 0x04:
        positional += values[names[position]]
        position += 1
    if code.co_flags & 0x08:
        keywords |= values[names[position]]
    return positional, keywords


def _qualified_name(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _importable(function: FunctionType) -> bool:
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is function
