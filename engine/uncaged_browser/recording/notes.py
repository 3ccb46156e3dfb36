"""Notes of a page's script, turned into operations: typing becomes one fill, two clicks a double
click, and each step gets the change of the page as its expectation. A page may forge notes, so each
is read as a foreign operation.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from uncaged_bundles import shapes
from uncaged_bundles.clean import encodable
from uncaged_bundles.records import dataclass

from ..addresses import without_login
from ..elements.targets import ElementName
from ..expectations import PageExpectation
from ..operations import (
    Click,
    Fill,
    Navigate,
    Open,
    Operation,
    Press,
    Scroll,
    Switch,
    Upload,
    read_operation,
    write_operation,
)
from .recording import MAX_BYTES, MAX_STEPS

__all__ = ["PageState", "StepNotes"]

MAX_SCROLLS = 20
MAX_LEFT_OUT = 100
MAX_LINE = 300
MAX_STEP_BYTES = 256 << 10
MAX_TITLE = 200
REACH_S = 30.0
"""Limit of a scrolling that ends at an element."""
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
Frames = Sequence[Sequence[ElementName]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """Address, title and first heading of a page."""

    url: str
    title: str = ""
    heading: str = ""

    @classmethod
    def of(cls, value: object) -> PageState:
        """Read the state that a page reported."""
        fields = encodable(value) if isinstance(value, Mapping) else {}
        texts = {key: str(fields.get(key, ""))[:2_000] for key in ("url", "title", "heading")}
        return cls(**{**texts, "url": without_login(texts["url"])})


class StepNotes:
    """The steps so far. left_out: what could not be noted, for people."""

    def __init__(self) -> None:
        self.steps: list[Operation] = []
        self.left_out: list[str] = []
        self._before: list[PageState | None] = []
        self._tabs: list[int] = []
        self._tab = 0
        self._scrolled = 0.0
        self._bytes = 0
        self._is_full = False

    def navigate(self, url: str, tab: int = 0, *, opened: bool = False) -> None:
        """Note an address that a person opened.

        Args:
            opened: a page opened the tab; else a tab that is new is opened with the address.
        """
        if url != (bare := without_login(url)):
            self.leave("the name and password in an address")
            url = bare
        known = tab in self._tabs or opened or not self.steps
        self._change_tab(tab, url)
        step = Navigate(url=url) if known else Open(url=url)
        self._append(step, PageState(url=url))

    def add(
        self, note: Mapping[str, object], frames: Frames = (), tab: int = 0, url: str = ""
    ) -> None:
        """Note an action; one that is malformed is left out.

        Args:
            tab: number of its tab, which is at *url*.
        """
        if self._is_full:
            return
        note = encodable(note)
        state = PageState.of(note.get("state")) if note.get("top") is True else None
        try:
            body = _body(note, frames)
            operation = None if body is None else read_operation(body, ("note",))
        except (shapes.ShapeError, TypeError, ValueError) as exc:
            self.leave(f"{str(note.get('kind'))[:20]}: {exc}")
            return
        if operation is not None and _size_of(operation) > MAX_STEP_BYTES:
            self.leave(f"{operation.do}: it is larger than {MAX_STEP_BYTES >> 10} KiB")
            return
        if len(self.steps) >= MAX_STEPS or self._bytes > MAX_BYTES // 2:
            self._is_full = True
            self.left_out.append(f"all after step {len(self.steps):,}: the recording is full")
            return
        if state is not None:
            self.settle(state, tab)
        self._change_tab(tab, url)
        if isinstance(operation, Scroll):
            self._scroll(operation, note, state)
        elif operation is not None:
            self._merge(operation, state, note)

    def leave(self, line: str) -> None:
        """Keep a line about what is left out, unless a page makes too many."""
        if len(self.left_out) < MAX_LEFT_OUT:
            self.left_out.append(encodable(line[:MAX_LINE]))

    def settle(self, state: PageState, tab: int = 0) -> None:
        """Give the last step its expectation: what its page changed, or the page that it opened."""
        if not self.steps or self.steps[-1].expect is not None:
            return
        if tab != self._tab and tab in self._tabs:
            return
        expect = _expectation(self._before[-1], state)
        if expect is not None:
            self.steps[-1] = replace(self.steps[-1], expect=expect)

    def _change_tab(self, tab: int, url: str) -> None:
        """Add a step to a tab that was used before; a new tab is the current one already."""
        if tab in self._tabs and tab != self._tab:
            self._append(Switch(words=urlsplit(url).path or "/"), None)
        if tab not in self._tabs:
            self._tabs.append(tab)
        self._tab = tab

    def _append(self, operation: Operation, state: PageState | None) -> None:
        self._scrolled = 0.0
        self._bytes += _size_of(operation)
        self.steps.append(operation)
        self._before.append(state)

    def _reach(self, operation: Operation, *, in_area: bool) -> None:
        """Let a scrolling end where the element of the next step is, however far that is. That of
        an area only does if the element is in the area.
        """
        target = getattr(operation, "target", None)
        scrolls = 0
        for step in reversed(self.steps):
            if not isinstance(step, Scroll) or step.target is not None:
                break
            if step.area is not None and not in_area:
                break
            scrolls += 1
        if not target or not scrolls:
            return
        first = len(self.steps) - scrolls
        direction = self.steps[first].direction  # type: ignore[attr-defined]
        reached = Scroll(
            direction="up" if direction == "up" else "down",
            target=target,
            frame=operation.frame,  # type: ignore[attr-defined]
            timeout_s=REACH_S,
        )
        self.steps[first:] = [reached]
        self._before[first + 1 :] = []

    def _merge(
        self, operation: Operation, state: PageState | None, note: Mapping[str, object]
    ) -> None:
        self._reach(operation, in_area=note.get("inArea") is True)
        last: Any = self.steps[-1] if self.steps else None
        same = last is not None and _same_target(last, operation)
        match operation:
            case Fill() if same and isinstance(last, Fill):
                self._replace(operation)
            case Fill() if same and isinstance(last, Click) and last.times == 1:
                self._replace(operation)  # the click put the cursor into the field
            case Click() if same and isinstance(last, Click) and operation.times == last.times + 1:
                self._replace(operation)
            case Click() if operation.times > 1:  # quick clicks on elements that differ by now
                self._append(replace(operation, times=1), state)
            case Press(key="Enter") if same and isinstance(last, Press) and note.get("repeat"):
                return
            case Upload():
                self.leave(f"upload of {', '.join(operation.files)}: only the names are noted")
                self._append(operation, state)
            case _:
                self._append(operation, state)

    def _replace(self, operation: Operation) -> None:
        self._bytes += _size_of(operation) - _size_of(self.steps[-1])
        self.steps[-1] = operation

    def _scroll(self, scroll: Scroll, note: Mapping[str, object], state: PageState | None) -> None:
        """Add a screen whenever the wheel has turned by one; at the end of the page or area, the
        end.
        """
        amount = note.get("amount")
        if not isinstance(amount, int | float) or not math.isfinite(amount) or not amount:
            return
        scrolled = self._scrolled + amount
        down = amount > 0
        last = self.steps[-1] if self.steps else None
        if down and note.get("end") is True:
            step = replace(scroll, direction="bottom")
            if last != step:
                self._append(step, state)
            return
        step = replace(scroll, direction="down" if down else "up")
        ours = [one for one in self.steps[-MAX_SCROLLS:] if one == step]
        if last != step or (abs(scrolled) >= 1 and len(ours) < MAX_SCROLLS):
            self._append(step, state)
            scrolled = 0.0
        self._scrolled = scrolled


def _size_of(operation: Operation) -> int:
    return len(json.dumps(write_operation(operation)))


def _body(note: Mapping[str, object], frames: Frames) -> dict[str, Any] | None:
    """Return the operation of a note as a mapping; None if it is none."""
    kind = note.get("kind")
    target = note.get("target")
    on: dict[str, Any] = {"target": target} if target else {}
    if frames and (target or note.get("area")):
        on["frame"] = [[one.document() for one in frame] for frame in frames]
    if target and note.get("facts"):
        on["facts"] = note["facts"]
    match kind:
        case "click":
            times = int(str(note.get("times")))
            extra = {key: note[key] for key in ("button", "offset") if note.get(key)}
            return {"do": "click", **on, **extra, "times": times if times in (2, 3) else 1}
        case "fill":
            secret = note.get("secret")
            text = note.get("value") if secret is None else f"secret:{_secret_name(str(secret))}"
            return {"do": "fill", **on, "text": text}
        case "select":
            return {"do": "select", **on, "options": note.get("options")}
        case "check":
            return {"do": "check", **on, "checked": note.get("checked")}
        case "upload":
            return {"do": "upload", **on, "files": note.get("files")}
        case "press":
            return {"do": "press", **on, "key": note.get("key")}
        case "drag":
            keys = ("onto", "ontoFacts", "offset", "onto_offset")
            return {"do": "drag", **on, **{key: note[key] for key in keys if note.get(key)}}
        case "scroll":
            area = note.get("area")
            return {"do": "scroll", **({"area": area} if area else {}), **on}
        case _:
            raise ValueError("no kind of note")


def _secret_name(text: str) -> str:
    """Return the name of a secret from its field's label."""
    name = re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")[:40]
    return name if re.match(r"[A-Z]", name) else "PASSWORD"


def _same_target(last: Any, operation: Any) -> bool:
    mine, other = getattr(operation, "target", None), getattr(last, "target", None)
    if not mine or not other or list(operation.frame) != list(last.frame):
        return False
    # while a text is typed, some of a field's ways may change
    return mine[0] == other[0] or bool(set(mine) & set(other) & _lasting(mine))


def _lasting(target: Sequence[ElementName]) -> set[ElementName]:
    return {one for one in target if one.way in ("css", "xpath", "label")}


def _expectation(before: PageState | None, after: PageState) -> PageExpectation | None:
    """Return what a step changed; numbers differ each time, so any fits in their place."""
    if before is None:
        return None
    url = None if _path(before.url) == _path(after.url) else _path(after.url)
    title = _pattern(after.title) if before.title != after.title else None
    heading = _pattern(after.heading) if before.heading != after.heading else None
    if not (url or title or heading):
        return None
    return PageExpectation(url=url, title=title, heading=heading)


def _path(url: str) -> str:
    """Return an address without its query, with a pattern for each part that has a number."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    path = "/".join(
        "*" if re.search(r"\d", part) else part.replace("*", r"\*")
        for part in (parts.path or "/").split("/")
    )
    route = parts.fragment.split("?")[0]
    if route.startswith("/"):
        path += "#" + "/".join("*" if re.search(r"\d", part) else part for part in route.split("/"))
    return f"{parts.scheme}://{parts.netloc}{path}"


def _pattern(text: str) -> str | None:
    pattern = NUMBER.sub("*", text[:MAX_TITLE].replace("*", r"\*")).strip()
    return pattern if re.search(r"\w", pattern) else None
