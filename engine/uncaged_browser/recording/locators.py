"""Locators of a Playwright script in Python, read as targets from its syntax tree."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from uncaged_bundles.records import dataclass
from uncaged_bundles.records import replace as record_replace

from ..elements.targets import ElementName
from ..secrets import name_of_secret

__all__ = ["CallArguments", "LocatedElement", "NotCarried", "element_of", "root_of"]

GETTERS: Mapping[str, Any] = {
    "get_by_label": "label",
    "get_by_placeholder": "placeholder",
    "get_by_text": "text",
    "get_by_test_id": "testId",
}
INTERNAL: Mapping[str, str] = {"label": "internal:label", "text": "internal:text"}
WITHOUT_MEANING = frozenset(
    {"delay", "force", "no_wait_after", "referer", "timeout", "trial", "wait_until"}
)
"""Arguments that change when and how surely a call acts, not what it does."""


class NotCarried(Exception):
    """A part of the script has no operation; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedElement:
    """A locator as a Playwright selector, and as an alternative if it is one `get_by_…` alone."""

    selector: str
    alternative: ElementName | None
    frames: tuple[tuple[ElementName, ...], ...] = ()

    @property
    def target(self) -> tuple[ElementName, ...]:
        """Return the alternatives of the element."""
        return (self.alternative or ElementName(way="css", value=self.selector),)


def root_of(node: ast.expr) -> str:
    """Return the name at the beginning of a chain of calls, such as ``page``."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def element_of(node: ast.expr) -> LocatedElement:
    """Return the element of a locator expression, from the page outwards."""
    match node:
        case ast.Name():
            return LocatedElement(selector="", alternative=None)
        case ast.Attribute(value=inner, attr="first"):
            return _with_nth(element_of(inner), 0)
        case ast.Attribute(value=inner, attr="last"):
            return _with_nth(element_of(inner), -1)
        case ast.Attribute(value=inner, attr="content_frame"):
            frame = element_of(inner)
            return LocatedElement(
                selector="", alternative=None, frames=(*frame.frames, frame.target)
            )
        case ast.Call(func=ast.Attribute(value=inner, attr=method)):
            arguments = CallArguments(node)
            found = _called(method, element_of(inner), arguments)
            arguments.check_all_read()
            return found
        case _:
            raise NotCarried(f"{ast.unparse(node)[:100]} is no locator")


def _called(method: str, parent: LocatedElement, arguments: CallArguments) -> LocatedElement:
    exact = arguments.value(None, "exact") is True
    match method:
        case "get_by_role":
            role, name = arguments.text(0, "role"), arguments.value(None, "name")
            if name is None:
                return _chained(parent, f"role={role}", ElementName(way="role", value=role))
            if not isinstance(name, str):
                raise NotCarried("a name that is no text")
            quoted = json.dumps(name, ensure_ascii=False)
            part = f"internal:role={role}[name={quoted}{'s' if exact else 'i'}]"
            return _chained(
                parent, part, ElementName(way="role", value=role, name=name, exact=exact)
            )
        case "get_by_label" | "get_by_placeholder" | "get_by_text" | "get_by_test_id":
            value = arguments.text(0, "test_id" if method == "get_by_test_id" else "text")
            way = GETTERS[method]
            alternative = ElementName(way=way, value=value, exact=exact or way == "testId")
            return _chained(parent, _internal(alternative), alternative)
        case "get_by_alt_text" | "get_by_title":
            attribute = "alt" if method == "get_by_alt_text" else "title"
            quoted = json.dumps(arguments.text(0, "text"), ensure_ascii=False)
            return _chained(parent, f"[{attribute}={quoted}{'' if exact else ' i'}]")
        case "locator":
            return _chained(parent, arguments.text(0, "selector"))
        case "frame_locator":
            frame = _chained(parent, arguments.text(0, "selector"))
            return LocatedElement(
                selector="", alternative=None, frames=(*frame.frames, frame.target)
            )
        case "nth":
            number = arguments.value(0, "index")
            if not isinstance(number, int) or isinstance(number, bool):
                raise NotCarried(f"{arguments}: {number!r} is no number")
            return _with_nth(parent, number)
        case "filter":
            quoted = json.dumps(arguments.text(None, "has_text"), ensure_ascii=False)
            return _chained(parent, f"internal:has-text={quoted}i")
        case _:
            raise NotCarried(f".{method}() finds nothing here")


def _internal(alternative: ElementName) -> str:
    """Return the selector that Playwright makes of `get_by_…`."""
    quoted = json.dumps(alternative.value, ensure_ascii=False)
    flag = "s" if alternative.exact else "i"
    match alternative.way:
        case "testId":
            return f"[data-testid={quoted}]"
        case "placeholder":
            return f"internal:attr=[placeholder={quoted}{flag}]"
        case way:
            return f"{INTERNAL[way]}={quoted}{flag}"


def _chained(
    parent: LocatedElement, part: str, alternative: ElementName | None = None
) -> LocatedElement:
    alone = not parent.selector
    # an alternative is css, so its first part has to be css
    plain = not part.startswith(("internal:", "role=", "text=", "xpath=", "//", "nth="))
    selector = part if alone and plain else f"{parent.selector or 'html'} >> {part}"
    return LocatedElement(
        selector=selector, alternative=alternative if alone else None, frames=parent.frames
    )


def _with_nth(parent: LocatedElement, number: int) -> LocatedElement:
    if not parent.selector and parent.frames:  # of several frames
        [*outer, (frame, *_)] = parent.frames
        if frame.way != "css":
            raise NotCarried("the number of a frame that is found by its name")
        numbered = ElementName(way="css", value=f"{frame.value} >> nth={number}")
        return record_replace(parent, frames=(*outer, (numbered,)))
    alternative = parent.alternative
    if alternative is not None and number >= 0:
        alternative = record_replace(alternative, nth=number)
    return LocatedElement(
        selector=f"{parent.selector} >> nth={number}",
        alternative=alternative if number >= 0 else None,
        frames=parent.frames,
    )


class CallArguments:
    """Literal arguments of a call. It notes which are read: one that is not would be lost."""

    def __init__(self, call: ast.Call) -> None:
        self._call = call
        self.named = {one.arg or "**": one.value for one in call.keywords}
        self._read: set[str] = set()

    def check_all_read(self) -> None:
        """Refuse a call with a named argument that was not read and has a meaning.

        Raises:
            NotCarried: it has one.
        """
        others = [name for name in self.named if name not in self._read | WITHOUT_MEANING]
        if others:
            raise NotCarried(f"{self}: {others[0]}= has no operation")

    def text(self, place: int | None, name: str = "") -> str:
        """Return a text."""
        value = self.value(place, name)
        if not isinstance(value, str):
            raise NotCarried(f"{self}: {value!r} is no text")
        return value

    def truth(self, place: int, name: str) -> bool:
        """Return True or False."""
        value = self.value(place, name)
        if not isinstance(value, bool):
            raise NotCarried(f"{self}: {value!r} is neither True nor False")
        return value

    def node(self, place: int) -> ast.expr:
        """Return an argument as it is written."""
        if len(self._call.args) <= place:
            raise NotCarried(f"{self} lacks an argument")
        return self._call.args[place]

    def texts(self, place: int, name: str = "") -> list[str]:
        """Return a text or a list of texts."""
        value = self.value(place, name)
        found = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(one, str) for one in found):
            raise NotCarried(f"{self}: a value is no text")
        return list(found)

    def value(self, place: int | None, name: str = "", default: object = None) -> object:
        """Return a literal value. place: None for one that has to be named."""
        self._read.add(name)
        node = self.named.get(name)
        if node is None and place is not None and len(self._call.args) > place:
            node = self._call.args[place]
        if node is None:
            return default
        try:
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
                return _secret(ast.literal_eval(node.slice))
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError):
            raise NotCarried(f"{ast.unparse(node)[:100]} is no literal value") from None

    def __str__(self) -> str:
        return ast.unparse(self._call)[:100]


def _secret(name: object) -> str:
    """Return a secret as a step names it.

    Raises:
        ValueError: it cannot have that name.
    """
    text = f"secret:{name}"
    if name_of_secret(text) is None:
        raise ValueError("no name of a secret")
    return text
