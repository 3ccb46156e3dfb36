"""Reader for projects of Selenium IDE (``.side``): the commands of their first test."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin

from uncaged_bundles import shapes

from ..elements.targets import ElementName
from ..expectations import PageExpectation
from ..operations import (
    Click,
    Close,
    Drag,
    Fill,
    Hover,
    Navigate,
    Operation,
    Press,
    Select,
    SetChecked,
    Type,
    WaitFor,
)
from .devtools import finished
from .recording import MAX_STEPS, Recording, RecordingError, checked, parsed

__all__ = ["read_selenium"]

KEY = re.compile(r"\$\{KEY_([A-Z_0-9]+)\}")
FRAME_NUMBER = re.compile(r"[0-9]{1,4}")
KEYS: Mapping[str, str] = {
    "ENTER": "Enter",
    "RETURN": "Enter",
    "TAB": "Tab",
    "ESC": "Escape",
    "ESCAPE": "Escape",
    "UP": "ArrowUp",
    "DOWN": "ArrowDown",
    "LEFT": "ArrowLeft",
    "RIGHT": "ArrowRight",
    "BACKSPACE": "Backspace",
    "BKSP": "Backspace",
    "DEL": "Delete",
    "DELETE": "Delete",
    "HOME": "Home",
    "END": "End",
    "PAGE_UP": "PageUp",
    "PAGE_DOWN": "PageDown",
    "SPACE": "Space",
}
MAX_ALTERNATIVES = 12
On = dict[str, Any]


class UnknownCommand(Exception):
    """A command has no operation; the message says which."""


def read_selenium(text: str) -> Recording:
    """Read a project.

    Raises:
        RecordingError: it is torn, too large, malformed, or loads no address.
    """
    value = parsed(text)
    try:
        return _read(shapes.mapping(value, ("project",)))
    except shapes.ShapeError as exc:
        raise RecordingError("malformed", str(exc)) from None


def _read(project: Mapping[str, object]) -> Recording:
    path: shapes.Path = ("project",)
    version = shapes.text(project.get("version", "2.0"), (*path, "version"))
    if version.partition(".")[0] not in ("1", "2"):
        raise RecordingError("newer", f"the project has version {version}; the newest known is 2")
    tests = shapes.items(shapes.required(project, "tests", path), (*path, "tests"))
    if not tests:
        raise RecordingError("malformed", "the project has no test")
    first = shapes.mapping(tests[0], (*path, "tests", 0))
    reader = SeleniumReader(shapes.text(project.get("url", ""), (*path, "url")))
    where = (*path, "tests", 0, "commands")
    commands = shapes.items(shapes.required(first, "commands", path), where)
    if len(commands) > MAX_STEPS:
        raise RecordingError("too-large", f"a recording has at most {MAX_STEPS:,} steps")
    for index, command in enumerate(commands):
        reader.read(shapes.mapping(command, (*where, index)), index + 1)
    for other in tests[1:]:
        name = shapes.mapping(other, (*path, "tests")).get("name")
        reader.left_out.append(f"test {name!r}: only the first test is read")
    name = shapes.text(first.get("name", "recording"), (*path, "tests", 0, "name"))
    return finished(name, reader.steps, reader.left_out)


class SeleniumReader:
    """Reads commands in order; the frame of the last one is kept."""

    def __init__(self, base: str) -> None:
        self.steps: list[Operation] = []
        self.left_out: list[str] = []
        self._base = base
        self._frames: list[tuple[ElementName, ...]] = []

    def read(self, command: Mapping[str, object], number: int) -> None:
        """Add the operations of a command, or a line about it."""
        word = shapes.text(shapes.required(command, "command", (number,)), (number, "command"))
        if not word:
            return
        try:
            self._add(word, command)
        except (UnknownCommand, shapes.ShapeError) as exc:
            self.left_out.append(f"command {number}: {exc}")

    def _add(self, word: str, command: Mapping[str, object]) -> None:
        target, value = str(command.get("target", "")), str(command.get("value", ""))
        match word:
            case "open":
                self.steps.append(checked(Navigate(url=self._address(target))))
                self._frames.clear()
            case "selectFrame":
                self._select_frame(target)
            case "sendKeys":
                self.steps += [checked(one) for one in _keys(value, self._on(command))]
            case "close":
                self.steps.append(Close())
            case "assertTitle" | "verifyTitle" if self.steps:
                known = (self.steps[-1].expect or PageExpectation()).document()
                expect = PageExpectation(**{**known, "title": target.replace("*", r"\*")})  # type: ignore[arg-type]
                self.steps[-1] = checked(replace(self.steps[-1], expect=expect))
            case "assertText" | "verifyText" if value:
                text = (ElementName(way="text", value=value),)
                here = tuple(self._frames)
                self.steps.append(checked(WaitFor(until="element", target=text, frame=here)))
            case _:
                make = COMMANDS.get(word)
                if make is None:
                    raise UnknownCommand(f"{word[:60]} has no operation")
                self.steps.append(checked(make(self._on(command), value)))

    def _address(self, target: str) -> str:
        try:
            return urljoin(self._base, target)
        except ValueError:
            raise UnknownCommand(f"open {target[:60]!r} is no address") from None

    def _on(self, command: Mapping[str, object]) -> On:
        """Return the element of a command, with all its locators."""
        listed = [str(command.get("target", ""))]
        targets = command.get("targets")
        for one in targets if isinstance(targets, list) else ():
            listed += [str(one[0])] if isinstance(one, list) and one else []
        found = [one for text in listed if (one := _alternative(text)) is not None]
        if not found:
            raise UnknownCommand(f"no locator of {listed[0][:60]!r} is known here")
        unique = tuple(dict.fromkeys(found))[:MAX_ALTERNATIVES]
        return {"target": unique, "frame": tuple(self._frames)}

    def _select_frame(self, target: str) -> None:
        way, _, value = target.partition("=")
        match way, value:
            case "relative", "parent":
                del self._frames[-1:]
            case "relative", "top":
                self._frames.clear()
            case "index", number if FRAME_NUMBER.fullmatch(number):
                path = f"(//iframe|//frame)[{int(number) + 1}]"
                self._frames.append((ElementName(way="xpath", value=path),))
            case _:
                found = _alternative(target)
                if found is None:
                    raise UnknownCommand(f"selectFrame {target[:60]!r} is no frame known here")
                self._frames.append((found,))


def _alternative(locator: str) -> ElementName | None:
    """Return one locator as an alternative; None if it has no such form."""
    if locator.startswith("//"):
        return ElementName(way="xpath", value=locator)
    way, _, value = locator.partition("=")
    if not value:
        return None
    quoted = json.dumps(value, ensure_ascii=False)
    match way:
        case "id" | "name":
            return ElementName(way="css", value=f"[{way}={quoted}]")
        case "css":
            return ElementName(way="css", value=value)
        case "xpath":
            return ElementName(way="xpath", value=value)
        case "linkText" | "link":
            return ElementName(way="role", value="link", name=value)
        case "partialLinkText":
            return ElementName(way="role", value="link", name=value, exact=False)
        case _:
            return None


def _keys(value: str, on: On) -> list[Operation]:
    """Return what is typed, with the keys that have names."""
    found: list[Operation] = []
    for index, part in enumerate(KEY.split(value)):
        if index % 2 == 0:
            found += [Type(text=part, **on)] if part else []
        elif part not in KEYS:
            raise UnknownCommand(f"the key {part} is not known here")
        else:
            found.append(Press(key=KEYS[part], **on))
    return found


def _options(value: str) -> list[str]:
    way, _, text = value.partition("=")
    if way not in ("label", "value") or not text:
        raise UnknownCommand(f"select {value[:60]!r} is neither label= nor value=")
    return [text]


def _drag(on: On, value: str) -> Operation:
    onto = _alternative(value)
    if onto is None:
        raise UnknownCommand(f"{value[:60]!r} is no locator known here")
    return Drag(**on, onto=(onto,))


COMMANDS: Mapping[str, Callable[[On, str], Operation]] = {
    "click": lambda on, _: Click(**on),
    "clickAt": lambda on, _: Click(**on),
    "doubleClick": lambda on, _: Click(**on, times=2),
    "doubleClickAt": lambda on, _: Click(**on, times=2),
    "type": lambda on, value: Fill(**on, text=value),
    "select": lambda on, value: Select(**on, options=_options(value)),
    "check": lambda on, _: SetChecked(**on),
    "uncheck": lambda on, _: SetChecked(**on, checked=False),
    "mouseOver": lambda on, _: Hover(**on),
    "dragAndDropToObject": _drag,
    "waitForElementPresent": lambda on, _: WaitFor(**on, until="element"),
    "waitForElementVisible": lambda on, _: WaitFor(**on, until="element"),
    "waitForElementNotPresent": lambda on, _: WaitFor(**on, until="gone"),
    "waitForElementNotVisible": lambda on, _: WaitFor(**on, until="gone"),
    "assertElementPresent": lambda on, _: WaitFor(**on, until="element"),
    "verifyElementPresent": lambda on, _: WaitFor(**on, until="element"),
}
