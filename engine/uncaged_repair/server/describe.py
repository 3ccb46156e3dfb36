"""Canonical texts of values, for comparing the results of calls. Only structure counts: no method
of the repository's own classes is called, and no address occurs.
"""

from __future__ import annotations

import itertools
import re
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MAX_NODES = 4000
MAX_DEPTH = 12
MAX_ITEMS = 50
"""Number of items that are taken from a generator or an iterator."""
ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
EMPTY: tuple[Any, ...] = ([], (), {}, set(), "", b"", range(0))
PLAIN = (int, float, complex, bool, type(None), str, bytes)
ITERATORS: tuple[type, ...] = (
    *(type(iter(empty)) for empty in EMPTY),
    GeneratorType,
    *(map, filter, zip, enumerate, reversed, itertools.chain, itertools.islice),
)
OBJECT_REPR: object = object.__repr__
NAMED = (type, FunctionType, BuiltinFunctionType, ModuleType)


def describe(value: object, consume: bool = False) -> str:
    """Return a text that is equal for values of equal structure.

    consume: take the first items of generators and iterators, which runs their code.
    """
    return _Description(consume).text(value, 0)


class _Description:
    """State of one description: the nodes left, and the containers around the current one."""

    def __init__(self, consume: bool) -> None:
        self._consume = consume
        self._left = MAX_NODES
        self._open: dict[int, int] = {}

    def text(self, value: Any, depth: int) -> str:
        kind = type(value)
        self._left -= 1
        if self._left <= 0 or depth > MAX_DEPTH:
            return "…"
        if kind in PLAIN:
            return repr(value)
        if isinstance(value, NAMED):
            return f"<{kind.__name__} {getattr(value, '__qualname__', getattr(value, '__name__', ''))}>"
        if id(value) in self._open:
            return f"<{kind.__name__} again>"
        self._open[id(value)] = depth
        try:
            return self._inside(value, kind, depth + 1)
        finally:
            del self._open[id(value)]

    def _inside(self, value: Any, kind: type, depth: int) -> str:
        name = kind.__name__
        if isinstance(value, dict):
            pairs = [
                f"{self.text(key, depth)}: {self.text(inner, depth)}"
                for key, inner in list(dict.items(value))
            ]
            return _wrapped(name, kind is dict, "{", ", ".join(sorted(pairs)), "}")
        if isinstance(value, list):
            return _wrapped(name, kind is list, "[", self._all(list.__iter__(value), depth), "]")
        if isinstance(value, tuple):
            return _wrapped(name, kind is tuple, "(", self._all(tuple.__iter__(value), depth), ",)")
        if isinstance(value, (set, frozenset)):
            held = set.__iter__(value) if isinstance(value, set) else frozenset.__iter__(value)
            texts = sorted(self.text(item, depth) for item in list(held))
            return _wrapped(name, kind is set, "{", ", ".join(texts), "}")
        if isinstance(value, str):
            return f"{name}({str.__repr__(value)})"
        if isinstance(value, (int, float)):
            base_repr = int.__repr__ if isinstance(value, int) else float.__repr__
            return f"{name}({base_repr(value)}{self._fields(value, depth)})"
        if isinstance(value, MethodType):
            return f"<method {value.__func__.__qualname__} of {self.text(value.__self__, depth)}>"
        if isinstance(value, ITERATORS):
            return f"<{name}{self._items(value, depth) if self._consume else ''}>"
        return self._object(value, kind, depth)

    def _object(self, value: Any, kind: type, depth: int) -> str:
        fields = self._fields(value, depth)
        if isinstance(value, PurePath):
            return f"{kind.__name__}({PurePath.__str__(value)!r})"
        if isinstance(value, BaseException):
            arguments = BaseException.__getattribute__(value, "args")
            return f"{kind.__name__}({self._all(arguments, depth)}{fields})"
        written: object = kind.__repr__
        if not fields and not isinstance(written, FunctionType) and written is not OBJECT_REPR:
            try:  # a type written in C: its text is its value
                return ADDRESS.sub("0x", repr(value))[:2000]
            except Exception:  # it holds something that has no text
                return f"<{kind.__name__}>"
        return f"{kind.__name__}({fields.lstrip(', ')})"

    def _fields(self, value: Any, depth: int) -> str:
        """Return the attributes that are stored in *value* itself, in the order of their names."""
        found: dict[str, Any] = {}
        for kind in type(value).__mro__:
            for name, member in list(vars(kind).items()):
                if type(member).__name__ == "member_descriptor" and kind.__module__ != "builtins":
                    try:
                        found[name] = member.__get__(value)
                    except AttributeError:
                        continue
        try:
            inner = object.__getattribute__(value, "__dict__")
        except AttributeError:
            inner = None
        if type(inner) is dict:
            found.update((str(name), held) for name, held in list(inner.items()))
        return "".join(f", {name}={self.text(found[name], depth)}" for name in sorted(found))

    def _all(self, items: Iterable[object], depth: int) -> str:
        texts = []
        for item in items:
            texts.append(self.text(item, depth))
            if self._left <= 0:
                break
        return ", ".join(texts)

    def _items(self, value: Any, depth: int) -> str:
        texts = []
        try:
            for item in itertools.islice(value, MAX_ITEMS):
                texts.append(self.text(item, depth))
        except BaseException as exc:  # the repository's generator may raise anything
            texts.append(f"raises {type(exc).__name__}")
        return " of " + ", ".join(texts)


def _wrapped(name: str, plain: bool, opening: str, inner: str, closing: str) -> str:
    return f"{opening}{inner}{closing}" if plain else f"{name}({opening}{inner}{closing})"
