"""Reader for Python that Playwright's code generator wrote: its syntax tree is read, and nothing of
it is executed.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from uncaged_bundles.records import dataclass
from uncaged_bundles.records import replace as record_replace

from ..elements.targets import ElementName
from ..expectations import PageExpectation
from ..operations import (
    Back,
    Click,
    Close,
    Drag,
    Fill,
    Forward,
    Hover,
    Navigate,
    Operation,
    Press,
    Reload,
    Scroll,
    Select,
    SetChecked,
    Type,
    Upload,
    WaitFor,
)
from .devtools import finished
from .recording import MAX_BYTES, MAX_STEPS, Recording, RecordingError

__all__ = ["read_codegen"]

GETTERS: Mapping[str, Any] = {
    "get_by_label": "label",
    "get_by_placeholder": "placeholder",
    "get_by_text": "text",
    "get_by_test_id": "testId",
}
INTERNAL: Mapping[str, str] = {"label": "internal:label", "text": "internal:text"}
ENTRIES = frozenset({"run", "main"})
"""Functions by which a script calls its own steps."""
SILENT = frozenset(
    {
        "chromium",
        "close",
        "launch",
        "new_context",
        "new_page",
        "route",
        "run",
        "set_default_timeout",
        "stop",
    }
)
"""Calls around the steps, which have no step of their own."""


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


def read_codegen(text: str) -> Recording:
    """Read a script of the code generator.

    Raises:
        RecordingError: it is no Python, too large, or has no step that loads an address.
    """
    if len(text) > MAX_BYTES:
        raise RecordingError("too-large", f"a script has at most {MAX_BYTES >> 20} MiB")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise RecordingError("torn", f"the script is not whole Python: {exc}") from None
    steps: list[Operation] = []
    left_out: list[str] = []
    for statement in _statements(tree.body):
        try:
            _add(statement, steps)
        except (NotCarried, RecursionError) as exc:
            left_out.append(f"line {statement.lineno}: {exc}")
        if len(steps) > MAX_STEPS:
            raise RecordingError("too-large", f"a recording has at most {MAX_STEPS:,} steps")
    return finished("recording", steps, left_out)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        match statement:
            case ast.FunctionDef(body=inner) | ast.AsyncFunctionDef(body=inner):
                yield from _statements(inner)
            case ast.With(body=inner) | ast.AsyncWith(body=inner):
                if "expect_download" in ast.unparse(statement.items[0].context_expr):
                    yield statement
                yield from _statements(inner)
            case ast.Expr() | ast.If() | ast.For() | ast.While() | ast.Try():
                yield statement
            case _:  # imports, and names for pages and contexts
                continue


def _add(statement: ast.stmt, steps: list[Operation]) -> None:
    """Append the operation of a statement, or its expectation to the last one."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Await):
        value = value.value
    if isinstance(value, ast.Constant):
        return
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        if isinstance(value, ast.Call) and ast.unparse(value.func) in ENTRIES:
            return
        first = ast.unparse(statement).partition("\n")[0]
        raise NotCarried(f"{first[:100]} has no operation")
    method, base = value.func.attr, value.func.value
    arguments = CallArguments(value)
    if _is_call(base, "expect"):
        _add_expectation(base, method, arguments, steps)
        return
    operation = _operation(method, base, arguments)
    if operation is not None:
        steps.append(operation)


class CallArguments:
    """Literal arguments of a call."""

    def __init__(self, call: ast.Call) -> None:
        self._call = call
        self.named = {one.arg: one.value for one in call.keywords if one.arg}

    def text(self, place: int, name: str = "") -> str:
        """Return a text."""
        value = self.value(place, name)
        if not isinstance(value, str):
            raise NotCarried(f"{ast.unparse(self._call)[:100]}: {value!r} is no text")
        return value

    def node(self, place: int) -> ast.expr:
        """Return an argument as it is written."""
        if len(self._call.args) <= place:
            raise NotCarried(f"{ast.unparse(self._call)[:100]} lacks an argument")
        return self._call.args[place]

    def texts(self, place: int) -> list[str]:
        """Return a text or a list of texts."""
        value = self.value(place)
        found = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(one, str) for one in found):
            raise NotCarried(f"{ast.unparse(self._call)[:100]}: a value is no text")
        return list(found)

    def value(self, place: int, name: str = "", default: object = None) -> object:
        """Return a literal value."""
        node = self.named.get(name)
        if node is None and len(self._call.args) > place:
            node = self._call.args[place]
        if node is None:
            return default
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            return f"secret:{ast.literal_eval(node.slice)}"
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError):
            raise NotCarried(f"{ast.unparse(node)[:100]} is no literal value") from None


def _operation(method: str, base: ast.expr, arguments: CallArguments) -> Operation | None:
    on_page = PAGE_METHODS.get(method)
    if isinstance(base, ast.Name):
        if on_page is not None and (base.id.startswith("page") or method == "goto"):
            return on_page(arguments)
        if method in SILENT:
            return None
        raise NotCarried(f"{base.id}.{method} has no operation")
    if isinstance(base, ast.Attribute) and base.attr == "keyboard":
        return _keyboard(method, arguments)
    make = LOCATOR_METHODS.get(method)
    if make is None:
        raise NotCarried(f".{method}() has no operation")
    element = _element(base)
    return make(arguments, {"target": element.target, "frame": element.frames})


def _keyboard(method: str, arguments: CallArguments) -> Operation:
    if method == "press":
        return Press(key=arguments.text(0))
    if method in ("type", "insert_text"):
        return Type(text=arguments.text(0))
    raise NotCarried(f"keyboard.{method} has no operation")


def _click(arguments: CallArguments, target: dict[str, Any], times: int = 1) -> Operation:
    position = arguments.value(9, "position")
    offset = [position.get("x"), position.get("y")] if isinstance(position, dict) else None
    if arguments.value(9, "modifiers"):
        raise NotCarried("a click with modifier keys has no operation")
    button: Any = arguments.value(9, "button", "left")
    return Click(**target, times=times, button=button, offset=offset)  # type: ignore[arg-type]


def _drag(arguments: CallArguments, target: dict[str, Any]) -> Operation:
    return Drag(**target, onto=_element(arguments.node(0)).target)


PAGE_METHODS: Mapping[str, Callable[[CallArguments], Operation | None]] = {
    "goto": lambda call: Navigate(url=call.text(0, "url")),
    "reload": lambda _: Reload(),
    "go_back": lambda _: Back(),
    "go_forward": lambda _: Forward(),
    "close": lambda _: Close(),
    "wait_for_load_state": lambda _: WaitFor(),
    "wait_for_url": lambda call: WaitFor(expect=PageExpectation(url=_url_pattern(call.text(0)))),
}
LOCATOR_METHODS: Mapping[str, Callable[[CallArguments, dict[str, Any]], Operation]] = {
    "click": _click,
    "dblclick": lambda call, target: _click(call, target, times=2),
    "fill": lambda call, target: Fill(**target, text=call.text(0, "value")),
    "clear": lambda _, target: Fill(**target, text=""),
    "type": lambda call, target: Type(**target, text=call.text(0)),
    "press_sequentially": lambda call, target: Type(**target, text=call.text(0)),
    "press": lambda call, target: Press(**target, key=call.text(0)),
    "check": lambda _, target: SetChecked(**target),
    "uncheck": lambda _, target: SetChecked(**target, checked=False),
    "set_checked": lambda call, target: SetChecked(**target, checked=call.value(0) is True),
    "select_option": lambda call, target: Select(**target, options=call.texts(0)),
    "set_input_files": lambda call, target: Upload(**target, files=call.texts(0)),
    "hover": lambda _, target: Hover(**target),
    "scroll_into_view_if_needed": lambda _, target: Scroll(**target),
    "wait_for": lambda _, target: WaitFor(**target, until="element"),
    "drag_to": _drag,
}


def _add_expectation(
    base: ast.expr, method: str, arguments: CallArguments, steps: list[Operation]
) -> None:
    subject = base.args[0] if isinstance(base, ast.Call) and base.args else None
    if method in ("to_be_visible", "to_be_hidden") and isinstance(subject, ast.Call):
        element = _element(subject)
        until: Any = "element" if method == "to_be_visible" else "gone"
        steps.append(WaitFor(until=until, target=element.target, frame=element.frames))
        return
    key = {
        "to_have_url": "url",
        "to_have_title": "title",
        "to_match_aria_snapshot": "view",
    }.get(method)
    if key is None or not steps:
        raise NotCarried(f"expect(…).{method} is not compared")
    text = arguments.text(0)
    known = steps[-1].expect or PageExpectation()
    values = {**known.document(), key: _url_pattern(text) if key == "url" else text}
    steps[-1] = replace(steps[-1], expect=PageExpectation(**values))  # type: ignore[arg-type]


def _url_pattern(text: str) -> str:
    return text.replace("**", "*")


def _is_call(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _element(node: ast.expr) -> LocatedElement:
    """Return the element of a locator expression, from the page outwards."""
    match node:
        case ast.Name():
            return LocatedElement(selector="", alternative=None)
        case ast.Attribute(value=inner, attr="first"):
            return _with_nth(_element(inner), 0)
        case ast.Attribute(value=inner, attr="last"):
            return _chained(_element(inner), "nth=-1")
        case ast.Attribute(value=inner, attr="content_frame"):
            frame = _element(inner)
            return LocatedElement(
                selector="", alternative=None, frames=(*frame.frames, frame.target)
            )
        case ast.Call(func=ast.Attribute(value=inner, attr=method)):
            return _called(method, _element(inner), CallArguments(node))
        case _:
            raise NotCarried(f"{ast.unparse(node)[:100]} is no locator")


def _called(method: str, parent: LocatedElement, arguments: CallArguments) -> LocatedElement:
    exact = arguments.value(9, "exact") is True
    match method:
        case "get_by_role":
            role, name = arguments.text(0), arguments.value(9, "name")
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
            value = arguments.text(0)
            way = GETTERS[method]
            alternative = ElementName(way=way, value=value, exact=exact or way == "testId")
            return _chained(parent, _internal(alternative), alternative)
        case "get_by_alt_text" | "get_by_title":
            attribute = "alt" if method == "get_by_alt_text" else "title"
            quoted = json.dumps(arguments.text(0), ensure_ascii=False)
            return _chained(parent, f"[{attribute}={quoted}{'' if exact else ' i'}]")
        case "locator":
            return _chained(parent, arguments.text(0))
        case "frame_locator":
            frame = _chained(parent, arguments.text(0))
            return LocatedElement(
                selector="", alternative=None, frames=(*frame.frames, frame.target)
            )
        case "nth":
            return _with_nth(parent, int(str(arguments.value(0))))
        case "filter":
            quoted = json.dumps(arguments.text(9, "has_text"), ensure_ascii=False)
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
    alternative = parent.alternative
    if alternative is not None and number >= 0:
        alternative = record_replace(alternative, nth=number)
    return LocatedElement(
        selector=f"{parent.selector} >> nth={number}",
        alternative=alternative if number >= 0 else None,
        frames=parent.frames,
    )
