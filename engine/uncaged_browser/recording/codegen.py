"""Reader for Python that Playwright's code generator wrote: its syntax tree is read, and nothing of
it is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.syntax import parse_module

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
    Open,
    Operation,
    Press,
    Reload,
    Scroll,
    Select,
    SetChecked,
    Switch,
    Type,
    Upload,
    WaitFor,
)
from .devtools import finished
from .locators import CallArguments, NotCarried, element_of, root_of
from .recording import MAX_STEPS, Recording, RecordingError, check_size, checked

__all__ = ["read_codegen"]

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


def read_codegen(text: str) -> Recording:
    """Read a script of the code generator.

    Raises:
        RecordingError: it is no Python, too large, or has no step that loads an address.
    """
    check_size(text)
    try:
        tree = parse_module(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise RecordingError("torn", f"the script is not whole Python: {exc}") from None
    reader = ScriptReader()
    for statement in _statements(tree.body):
        reader.read(statement)
        if len(reader.steps) > MAX_STEPS:
            raise RecordingError("too-large", f"a recording has at most {MAX_STEPS:,} steps")
    while reader.steps and isinstance(reader.steps[-1], Close | Switch):
        reader.steps.pop()  # a flow closes its tabs itself
    return finished("recording", reader.steps, reader.left_out)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        match statement:
            case ast.FunctionDef(body=inner) | ast.AsyncFunctionDef(body=inner):
                yield from _statements(inner)
            case ast.With(body=inner) | ast.AsyncWith(body=inner):
                if _expects_download(statement.items[0].context_expr):
                    yield statement
                yield from _statements(inner)
            case ast.Assign() | ast.Expr() | ast.If() | ast.For() | ast.While() | ast.Try():
                yield statement
            case _:  # imports
                continue


def _expects_download(node: ast.expr) -> bool:
    return any(
        isinstance(one, ast.Attribute) and one.attr == "expect_download" for one in ast.walk(node)
    )


class ScriptReader:
    """Reads statements in order. A script names its tabs; a flow acts on the current one, which a
    step switches.
    """

    def __init__(self) -> None:
        self.steps: list[Operation] = []
        self.left_out: list[str] = []
        self._page = ""
        self._seen: set[str] = set()
        self._new: set[str] = set()
        self._addresses: dict[str, str] = {}

    def read(self, statement: ast.stmt) -> None:
        """Add the operation of a statement, or its expectation to the last one, or a line about
        it.
        """
        try:
            if isinstance(statement, ast.Assign):
                self._assign(statement)
            else:
                self._add(statement)
        except (NotCarried, RecursionError, shapes.ShapeError) as exc:
            self.left_out.append(f"line {statement.lineno}: {exc}")

    def _assign(self, statement: ast.Assign) -> None:
        """Note the name of a new tab; other names are of no interest."""
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr="new_page"))
            ):
                self._new.add(name)
            case _:
                pass

    def _add(self, statement: ast.stmt) -> None:
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
            self._expect(base, method, arguments)
            return
        operation = _operation(method, base, arguments)
        if operation is not None:
            arguments.check_all_read()
            self._append(operation, root_of(base))

    def _append(self, operation: Operation, page: str) -> None:
        """Add an operation on a tab."""
        operation = checked(operation)
        if isinstance(operation, Navigate):
            if page in self._new and self._page not in ("", page):
                operation = Open(url=operation.url)
            self._new.discard(page)
            self._addresses[page] = operation.url
        else:
            self._show(page)
        self._page = page
        self._seen.add(page)
        self.steps.append(operation)

    def _show(self, page: str) -> None:
        """Switch to a tab that was used before; one that a page opened is the current one."""
        if page == self._page or page not in self._seen:
            return
        if page not in self._addresses:
            raise NotCarried(f"{page} is another tab, whose address is not known")
        self.steps.append(Switch(words=self._addresses[page]))

    def _expect(self, base: ast.expr, method: str, arguments: CallArguments) -> None:
        subject = base.args[0] if isinstance(base, ast.Call) and base.args else None
        if method in ("to_be_visible", "to_be_hidden") and isinstance(subject, ast.Call):
            element = element_of(subject)
            until: Any = "element" if method == "to_be_visible" else "gone"
            wait = WaitFor(until=until, target=element.target, frame=element.frames)
            self._append(wait, root_of(subject))
            return
        key = {
            "to_have_url": "url",
            "to_have_title": "title",
            "to_match_aria_snapshot": "view",
        }.get(method)
        if key is None or not self.steps:
            raise NotCarried(f"expect(…).{method} is not compared")
        text = arguments.text(0)
        arguments.check_all_read()
        known = self.steps[-1].expect or PageExpectation()
        values = {**known.document(), key: _url_pattern(text) if key == "url" else text}
        expect = PageExpectation(**values)  # type: ignore[arg-type]
        self.steps[-1] = checked(replace(self.steps[-1], expect=expect))


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
    element = element_of(base)
    return make(arguments, {"target": element.target, "frame": element.frames})


def _keyboard(method: str, arguments: CallArguments) -> Operation:
    if method == "press":
        return Press(key=arguments.text(0))
    if method in ("type", "insert_text"):
        return Type(text=arguments.text(0))
    raise NotCarried(f"keyboard.{method} has no operation")


def _click(arguments: CallArguments, target: dict[str, Any], times: int = 1) -> Operation:
    button: Any = arguments.value(None, "button", "left")
    count: Any = arguments.value(None, "click_count", times)
    offset = _point(arguments, "position")
    return Click(**target, times=count, button=button, offset=offset)


def _drag(arguments: CallArguments, target: dict[str, Any]) -> Operation:
    return Drag(
        **target,
        onto=element_of(arguments.node(0)).target,
        offset=_point(arguments, "source_position"),
        onto_offset=_point(arguments, "target_position"),
    )


def _point(arguments: CallArguments, name: str) -> Any:
    position = arguments.value(None, name)
    return [position.get("x"), position.get("y")] if isinstance(position, dict) else position


def _wait(arguments: CallArguments, target: dict[str, Any]) -> Operation:
    state = arguments.value(None, "state", "visible")
    until = WAITS.get(state) if isinstance(state, str) else None
    if until is None:
        raise NotCarried(f"a wait for the state {state!r} has no operation")
    return WaitFor(**target, until=until)


def _select(arguments: CallArguments, target: dict[str, Any]) -> Operation:
    name = "label" if "label" in arguments.named else "value"
    return Select(**target, options=arguments.texts(0, name))


WAITS: Mapping[str, Any] = {
    "visible": "element",
    "attached": "attached",
    "hidden": "gone",
}
PAGE_METHODS: Mapping[str, Callable[[CallArguments], Operation | None]] = {
    "goto": lambda call: Navigate(url=call.text(0, "url")),
    "reload": lambda _: Reload(),
    "go_back": lambda _: Back(),
    "go_forward": lambda _: Forward(),
    "close": lambda _: Close(),
    "wait_for_load_state": lambda _: WaitFor(),
    "wait_for_url": lambda call: WaitFor(
        expect=PageExpectation(url=_url_pattern(call.text(0, "url")))
    ),
}
LOCATOR_METHODS: Mapping[str, Callable[[CallArguments, dict[str, Any]], Operation]] = {
    "click": _click,
    "dblclick": lambda call, target: _click(call, target, times=2),
    "fill": lambda call, target: Fill(**target, text=call.text(0, "value")),
    "clear": lambda _, target: Fill(**target, text=""),
    "type": lambda call, target: Type(**target, text=call.text(0, "text")),
    "press_sequentially": lambda call, target: Type(**target, text=call.text(0, "text")),
    "press": lambda call, target: Press(**target, key=call.text(0, "key")),
    "check": lambda _, target: SetChecked(**target),
    "uncheck": lambda _, target: SetChecked(**target, checked=False),
    "set_checked": lambda call, target: SetChecked(**target, checked=call.truth(0, "checked")),
    "select_option": _select,
    "set_input_files": lambda call, target: Upload(**target, files=call.texts(0, "files")),
    "hover": lambda _, target: Hover(**target),
    "scroll_into_view_if_needed": lambda _, target: Scroll(**target),
    "wait_for": _wait,
    "drag_to": _drag,
}


def _url_pattern(text: str) -> str:
    return text.replace("**", "*")


def _is_call(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
