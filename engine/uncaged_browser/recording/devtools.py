"""Recordings of the Chrome DevTools Recorder: read from its JSON and written to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from uncaged_bundles import shapes

from ..addresses import parts_of
from ..elements.targets import ElementName
from ..expectations import PageExpectation
from ..operations import (
    Click,
    Close,
    Fill,
    Hover,
    Navigate,
    Operation,
    Press,
    Scroll,
    SetChecked,
    Switch,
    WaitFor,
)
from .recording import MAX_HOSTS, MAX_STEPS, Recording, RecordingError, checked, hosts_of, parsed

__all__ = ["read_devtools"]

MAX_NAME = 200
MAX_FRAME_NUMBER = 10_000
BUTTONS: Mapping[str, Any] = {"primary": "left", "auxiliary": "middle", "secondary": "right"}
MODIFIERS = ("Control", "Alt", "Meta", "Shift")
CLICKABLE = ("button", "link", "menuitem", "tab", "option", "checkbox", "radio")
BOX_ROLE = re.compile(r"\[role=\"(?:checkbox|radio|switch)\"\]")
FILLABLE = ("textbox", "searchbox", "combobox", "spinbutton")
ARIA = re.compile(r'aria/(?P<name>.*?)(?:\[role="(?P<role>\w+)"\])?', re.DOTALL)
MAIN = "main"


def read_devtools(text: str) -> Recording:
    """Read a recording of the DevTools Recorder.

    Raises:
        RecordingError: it is torn or malformed, or goes to too many hosts.
    """
    value = parsed(text)
    path: shapes.Path = ("recording",)
    try:
        shapes.json_data(value, path)
        fields = shapes.mapping(value, path)
        listed = shapes.items(shapes.required(fields, "steps", path), (*path, "steps"))
        if len(listed) > MAX_STEPS:
            raise RecordingError("too-large", f"the recording has {len(listed):,} steps")
        reader = DevToolsReader()
        for index, step in enumerate(listed):
            reader.read(shapes.mapping(step, (*path, "steps", index)), (*path, "steps", index))
        title = shapes.text(fields.get("title", "recording"), (*path, "title"))
    except shapes.ShapeError as exc:
        raise RecordingError("malformed", str(exc)) from None
    return finished(title, reader.steps, reader.left_out)


def finished(title: str, steps: list[Operation], left_out: list[str]) -> Recording:
    """Return an imported recording.

    Raises:
        RecordingError: it has no address to begin at, or too many hosts.
    """
    loads = [number for number, step in enumerate(steps) if _is_load(step)]
    if not loads:
        raise RecordingError("malformed", "the recording has no step that loads an address")
    left_out += (f"{step.do}: before the first address" for step in steps[: loads[0]])
    del steps[: loads[0]]
    url = getattr(steps[0], "url", "")
    first, *others = hosts_of(url, tuple(steps))
    if len(others) >= MAX_HOSTS:
        raise RecordingError(
            "foreign-hosts",
            f"the recording goes to {len(others) + 1} hosts; at most {MAX_HOSTS} are followed",
        )
    return Recording(
        name=title.strip()[:MAX_NAME] or first,
        url=url,
        steps=tuple(steps),
        left_out=tuple(left_out),
        hosts=tuple(others),
    )


def _is_load(step: Operation) -> bool:
    return isinstance(step, Navigate) and step.url != "about:blank"


class DevToolsReader:
    """Reads steps in order: pairs of keys become one step, and the tab of the last step is kept."""

    def __init__(self) -> None:
        self.steps: list[Operation] = []
        self.left_out: list[str] = []
        self._pressed: list[str] = []
        self._tab = MAIN
        self._main_url = ""

    def read(self, step: Mapping[str, object], path: shapes.Path) -> None:
        """Add the operation of a step, or a line about it."""
        type = shapes.text(shapes.required(step, "type", path), (*path, "type"))
        read = READERS.get(type)
        if read is None:
            self._leave(path, f"{type} is no step that is known here")
            return
        self._change_tab(step, path)
        operation = read(self, step, path)
        if operation is None:
            return
        expect = _expectation(step, path)
        try:
            self.steps.append(checked(replace(operation, expect=expect)))
        except shapes.ShapeError as exc:
            self._leave(path, str(exc))

    def _leave(self, path: shapes.Path, reason: str) -> None:
        number = next((part for part in reversed(path) if isinstance(part, int)), 0)
        self.left_out.append(f"step {number + 1}: {reason}")

    def _change_tab(self, step: Mapping[str, object], path: shapes.Path) -> None:
        tab = shapes.text(step.get("target", MAIN), (*path, "target"))
        if tab == self._tab or step.get("type") in ("setViewport", "emulateNetworkConditions"):
            return
        # a tab that was opened last is the current one already
        if tab == MAIN and self._main_url:
            self.steps.append(Switch(words=self._main_url))
        self._tab = tab

    def leave_viewport(self, step: Mapping[str, object], path: shapes.Path) -> None:
        """Report a size of the window, which a flow does not set."""
        self._leave(path, f"setViewport {step.get('width')}×{step.get('height')} is not set")

    def leave_network(self, _step: Mapping[str, object], path: shapes.Path) -> None:
        """Report an emulated network."""
        self._leave(path, "emulateNetworkConditions is not emulated")

    def leave_expression(self, step: Mapping[str, object], path: shapes.Path) -> None:
        """Report an expression: no text of a recording is run in a page."""
        expression = str(step.get("expression", ""))[:100]
        self._leave(path, f"waitForExpression {expression!r} is not run in the page")

    def leave_custom(self, step: Mapping[str, object], path: shapes.Path) -> None:
        """Report a step of an extension of the recorder."""
        self._leave(path, f"customStep {str(step.get('name', ''))[:60]!r} is not known here")

    def navigate(self, step: Mapping[str, object], path: shapes.Path) -> Operation:
        """Return the load of an address."""
        url = shapes.filled(shapes.required(step, "url", path), (*path, "url"))
        if self._tab == MAIN:
            self._main_url = url
        return Navigate(url=url)

    def close(self, _step: Mapping[str, object], _path: shapes.Path) -> Operation:
        """Return the close of the tab."""
        self._tab = ""
        return Close()

    def click(self, step: Mapping[str, object], path: shapes.Path) -> Operation:
        """Return a click, or a double click, at its place in the element."""
        button = shapes.text(step.get("button", "primary"), (*path, "button"))
        if button not in BUTTONS:
            self._leave(path, f"the mouse button {button!r} became the left one")
        place = (step.get("offsetX"), step.get("offsetY"))
        offset = (
            [shapes.number(one, path) for one in place]
            if all(one is not None for one in place)
            else None
        )
        return Click(
            target=_target(step, path, CLICKABLE),
            frame=_frame(step, path),
            button=BUTTONS.get(button, "left"),
            times=2 if step["type"] == "doubleClick" else 1,
            offset=offset,
        )

    def hover(self, step: Mapping[str, object], path: shapes.Path) -> Operation:
        """Return a move of the mouse."""
        return Hover(target=_target(step, path, CLICKABLE), frame=_frame(step, path))

    def change(self, step: Mapping[str, object], path: shapes.Path) -> Operation:
        """Return the new content of a field, or the state of a box whose role is known."""
        text = shapes.text(shapes.required(step, "value", path), (*path, "value"))
        target, frame = _target(step, path, FILLABLE, labelled=True), _frame(step, path)
        if text in ("true", "false") and BOX_ROLE.search(str(step.get("selectors"))):
            return SetChecked(target=target, frame=frame, checked=text == "true")
        return Fill(target=target, frame=frame, text=text)

    def key_down(self, step: Mapping[str, object], path: shapes.Path) -> Operation | None:
        """Return a key with the modifiers that are pressed; a modifier alone is no step."""
        key = shapes.filled(shapes.required(step, "key", path), (*path, "key"))
        if key in MODIFIERS:
            self._pressed.append(key)
            return None
        return Press(key="+".join([*self._pressed, key]))

    def key_up(self, step: Mapping[str, object], path: shapes.Path) -> None:
        """Forget a modifier."""
        key = shapes.filled(shapes.required(step, "key", path), (*path, "key"))
        if key in self._pressed:
            self._pressed.remove(key)

    def scroll(self, step: Mapping[str, object], path: shapes.Path) -> Operation:
        """Return a scroll to an element, or by a screen."""
        if step.get("selectors"):
            return Scroll(target=_target(step, path, ()), frame=_frame(step, path))
        x, y = (shapes.number(step.get(key, 0), (*path, key)) for key in ("x", "y"))
        direction: Any = "down" if y > 0 else "right" if x > 0 else "top"
        if direction != "top":
            self._leave(path, f"the scroll to ({x:g}, {y:g}) became one screen {direction}")
        return Scroll(direction=direction)

    def wait(self, step: Mapping[str, object], path: shapes.Path) -> Operation | None:
        """Return a wait for an element."""
        count = shapes.number(step.get("count", 1), (*path, "count"))
        operator = shapes.text(step.get("operator", ">="), (*path, "operator"))
        for key in ("attributes", "properties"):
            if step.get(key):
                self._leave(path, f"waitForElement does not compare {key}")
        gone = step.get("visible") is False or (count == 0 and operator in ("==", "<="))
        if not gone and (count != 1 or operator == "<="):
            self._leave(path, f"waitForElement with count {operator} {count:g} waits for one")
        return WaitFor(
            until="gone" if gone else "element",
            target=_target(step, path, ()),
            frame=_frame(step, path),
        )


Reader = Callable[[DevToolsReader, Mapping[str, object], shapes.Path], Operation | None]
READERS: Mapping[str, Reader] = {
    "setViewport": DevToolsReader.leave_viewport,
    "emulateNetworkConditions": DevToolsReader.leave_network,
    "waitForExpression": DevToolsReader.leave_expression,
    "customStep": DevToolsReader.leave_custom,
    "navigate": DevToolsReader.navigate,
    "close": DevToolsReader.close,
    "click": DevToolsReader.click,
    "doubleClick": DevToolsReader.click,
    "hover": DevToolsReader.hover,
    "change": DevToolsReader.change,
    "keyDown": DevToolsReader.key_down,
    "keyUp": DevToolsReader.key_up,
    "scroll": DevToolsReader.scroll,
    "waitForElement": DevToolsReader.wait,
}
"""The reader of each type of step."""


def _target(
    step: Mapping[str, object],
    path: shapes.Path,
    roles: tuple[str, ...],
    *,
    labelled: bool = False,
) -> tuple[ElementName, ...]:
    listed = shapes.items(shapes.required(step, "selectors", path), (*path, "selectors"))
    found: list[ElementName] = []
    for index, one in enumerate(listed):
        here = (*path, "selectors", index)
        chain = [one] if isinstance(one, str) else shapes.texts(one, here)
        if chain:
            found += _alternatives(chain, roles, labelled=labelled)
    if not found:
        raise shapes.ShapeError((*path, "selectors"), "has no selector that is known here")
    return tuple(dict.fromkeys(found))[:20]


def _alternatives(chain: list[str], roles: tuple[str, ...], *, labelled: bool) -> list[ElementName]:
    """Return the alternatives of a selector: each part of a chain is inside the shadow root of the
    part before it.
    """
    last = chain[-1]
    aria = ARIA.fullmatch(last)
    if aria is not None:
        return _by_name(aria["name"], aria["role"], roles, labelled=labelled)
    if last.startswith("text/"):
        return [ElementName(way="text", value=last.removeprefix("text/"))]
    if last.startswith("xpath/"):
        value = last.removeprefix("xpath/")
        return [ElementName(way="xpath", value=value)] if len(chain) == 1 else []
    if any(part.startswith(("aria/", "text/", "xpath/")) for part in chain):
        return []
    return [
        ElementName(way="css", value=" >> ".join(part.removeprefix("pierce/") for part in chain))
    ]


def _by_name(
    name: str, role: str | None, roles: tuple[str, ...], *, labelled: bool
) -> list[ElementName]:
    if not name:
        return [ElementName(way="role", value=role)] if role else []
    if role:
        return [ElementName(way="role", value=role, name=name)]
    found = [ElementName(way="role", value=one, name=name) for one in roles]
    if labelled:
        found += [
            ElementName(way="label", value=name),
            ElementName(way="placeholder", value=name),
        ]
    else:
        found.append(ElementName(way="text", value=name))
    return found


def _frame(step: Mapping[str, object], path: shapes.Path) -> tuple[tuple[ElementName, ...], ...]:
    numbers = shapes.items(step.get("frame", []), (*path, "frame"))
    number = shapes.whole_between(0, MAX_FRAME_NUMBER)
    return tuple(
        (ElementName(way="xpath", value=f"(//iframe|//frame)[{number(one, path) + 1}]"),)
        for one in numbers
    )


def _expectation(step: Mapping[str, object], path: shapes.Path) -> PageExpectation | None:
    events = shapes.items(step.get("assertedEvents", []), (*path, "assertedEvents"))
    for index, event in enumerate(events):
        fields = shapes.mapping(event, (*path, "assertedEvents", index))
        url = _pattern(shapes.text(fields.get("url", ""), path))
        title = shapes.text(fields.get("title", ""), path)
        if fields.get("type") == "navigation" and (url or title):
            return PageExpectation(url=url or None, title=title or None)
    return None


def _pattern(url: str) -> str:
    """Return the address without what differs each time: query and fragment."""
    parts = parts_of(url)
    if parts is None or not parts.scheme:
        return ""
    return f"{parts.scheme}://{parts.netloc}{parts.path or '/'}"
