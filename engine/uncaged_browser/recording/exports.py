"""Export of recordings to the forms of other tools: JSON of the DevTools Recorder, and Python with
Playwright.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import operations
from ..elements.targets import ElementName
from ..operations import Operation
from ..secrets import name_of_secret
from .recording import Recording

__all__ = ["to_playwright_python", "to_recorder_json"]

WINDOW = {"width": 1280, "height": 720, "deviceScaleFactor": 1}
BUTTONS: Mapping[str, str] = {"left": "primary", "middle": "auxiliary", "right": "secondary"}
MODIFIERS = ("Control", "Alt", "Meta", "Shift")
EXTENDED_CSS = (" >> ", ":text-is(", ":has-text(")
"""Marks of css that only Playwright reads."""
FRAME_NUMBER = re.compile(r"\(//iframe\|//frame\)\[(\d+)\]")
Fields = dict[str, Any]


def to_recorder_json(recording: Recording) -> str:
    """Return a recording as the DevTools Recorder reads it; other operations become steps of type
    ``customStep``.
    """
    viewport = {"type": "setViewport", **WINDOW, "isMobile": False, "hasTouch": False}
    steps: list[Fields] = [{**viewport, "isLandscape": False}]
    if not (recording.steps and isinstance(recording.steps[0], operations.Navigate)):
        steps.append({"type": "navigate", "url": recording.url})
    for step in recording.steps:
        written = _recorder_steps(step)
        if step.expect is not None and (step.expect.url or step.expect.title):
            written[-1]["assertedEvents"] = [
                {
                    "type": "navigation",
                    "url": step.expect.url or "",
                    "title": step.expect.title or "",
                }
            ]
        steps += written
    document = {"title": recording.name, "steps": steps}
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _recorder_steps(step: Operation) -> list[Fields]:
    match step:
        case operations.Navigate(url=url) | operations.Open(url=url):
            return [{"type": "navigate", "url": url}]
        case operations.Click() if step.times < 3:
            return [_recorder_click(step)]
        case operations.Fill(text=text):
            enter = _recorder_keys("Enter") if step.submit else []
            return [{**_on(step), "type": "change", "value": text}, *enter]
        case operations.Select(options=[text]):
            return [{**_on(step), "type": "change", "value": text}]
        case operations.SetChecked():
            return [{**_on(step), "type": "change", "value": str(step.checked).lower()}]
        case operations.Press(key=key):
            return _recorder_keys(key)
        case operations.Hover():
            return [{**_on(step), "type": "hover"}]
        case operations.Scroll(area=None):
            place = {"x": 0, "y": 0 if step.direction == "top" else WINDOW["height"]}
            return [{**(_on(step) if step.target else place), "type": "scroll"}]
        case operations.WaitFor(until="element" | "gone" as until, target=target) if target:
            gone = {"visible": False} if until == "gone" else {}
            return [{**_on(step), "type": "waitForElement", **gone}]
        case operations.Close():
            return [{"type": "close"}]
        case _:
            body = operations.write_operation(step)
            return [{"type": "customStep", "name": f"uncaged-{step.do}", "parameters": body}]


def _recorder_click(step: operations.Click) -> Fields:
    x, y = step.offset or (1.0, 1.0)
    button = {} if step.button == "left" else {"button": BUTTONS[step.button]}
    type = "doubleClick" if step.times == 2 else "click"
    return {**_on(step), "type": type, "offsetX": x, "offsetY": y, **button}


def _recorder_keys(key: str) -> list[Fields]:
    parts = key.split("+") if key != "+" else [key]
    down = [{"type": "keyDown", "key": part} for part in parts]
    return [*down, *({"type": "keyUp", "key": part} for part in reversed(parts))]


def _on(step: Any) -> Fields:
    selectors = [selector for one in step.target for selector in _recorder_selector(one)]
    frames = [FRAME_NUMBER.fullmatch(frame[0].value) for frame in step.frame]
    numbers = [int(found[1]) - 1 for found in frames if found]
    return {"selectors": selectors, **({"frame": numbers} if numbers else {})}


def _recorder_selector(one: ElementName) -> list[list[str]]:
    if one.nth is not None or one.near:
        return []
    match one.way:
        case "role" if one.name:
            return [[f'aria/{one.name}[role="{one.value}"]']]
        case "label" | "placeholder":
            return [[f"aria/{one.value}"]]
        case "text":
            return [[f"text/{one.value}"]]
        case "testId":
            return [[f"pierce/[data-testid={json.dumps(one.value)}]"]]
        case "css":
            chain = one.value.split(" >> ")
            extended = any(mark in part for part in chain for mark in EXTENDED_CSS[1:])
            internal = any(part.startswith(("internal:", "role=", "nth=")) for part in chain)
            return [] if extended or internal else [chain]
        case "xpath":
            return [[f"xpath/{one.value}"]]
        case _:
            return []


def to_playwright_python(recording: Recording) -> str:
    """Return a recording as a script for Playwright, as its code generator writes it."""
    lines = ["page = context.new_page()"]
    if not (recording.steps and isinstance(recording.steps[0], operations.Navigate)):
        lines.append(f"page.goto({_q(recording.url)})")
    for step in recording.steps:
        lines += _python_lines(step)
    body = "".join(f"    {line}\n" for line in lines)
    head = "import os\n\n" if "os.environ[" in body else ""
    return (
        f"{head}from playwright.sync_api import Playwright, expect, sync_playwright\n\n\n"
        "def run(playwright: Playwright) -> None:\n"
        "    browser = playwright.chromium.launch()\n"
        "    context = browser.new_context()\n"
        f"{body}    context.close()\n    browser.close()\n\n\n"
        "with sync_playwright() as playwright:\n    run(playwright)\n"
    )


def _python_lines(step: Operation) -> list[str]:
    call = _python_call(step)
    if call is None:
        body = json.dumps(operations.write_operation(step), ensure_ascii=False)
        return [f"# not carried over: {body}"]
    lines = [call]
    if isinstance(step, operations.Fill) and step.submit:
        lines.append(f"{_locator(step.target[0], step.frame)}.press({_q('Enter')})")
    if step.expect is not None and step.expect.title and "*" not in step.expect.title:
        lines.append(f"expect(page).to_have_title({_q(step.expect.title)})")
    if step.expect is not None and step.expect.view:
        lines.append(f"expect(page.locator('body')).to_match_aria_snapshot({_q(step.expect.view)})")
    return lines


def _python_call(step: Operation) -> str | None:
    match step:
        case operations.Navigate(url=url) | operations.Open(url=url):
            return f"page.goto({_q(url)})"
        case operations.Back():
            return "page.go_back()"
        case operations.Forward():
            return "page.go_forward()"
        case operations.Reload():
            return "page.reload()"
        case operations.Close():
            return "page.close()"
        case operations.Type(text=text) if not step.target:
            return f"page.keyboard.type({_q(text)})"
        case operations.Press(key=key) if not step.target:
            return f"page.keyboard.press({_q(key)})"
        case _:
            return _python_on_element(step)


def _python_on_element(step: Operation) -> str | None:
    target = getattr(step, "target", None)
    if not target:
        return None
    action = _python_action(step)
    return None if action is None else f"{_locator(target[0], getattr(step, 'frame', ()))}.{action}"


def _python_action(step: Operation) -> str | None:
    match step:
        case operations.Click():
            return _python_click(step)
        case operations.Fill(text=text):
            secret = name_of_secret(text)
            return f"fill({_q(text) if secret is None else f'os.environ[{_q(secret)}]'})"
        case operations.Type(text=text):
            return f"press_sequentially({_q(text)})"
        case operations.Press(key=key):
            return f"press({_q(key)})"
        case operations.Select(options=options):
            return f"select_option({_q(options)})"
        case operations.SetChecked(checked=checked):
            return "check()" if checked else "uncheck()"
        case operations.Upload(files=files):
            return f"set_input_files({_q(files)})"
        case operations.Hover():
            return "hover()"
        case operations.Drag(onto=onto):
            points = {"source_position": step.offset, "target_position": step.onto_offset}
            where = "".join(f", {key}={_point(at)}" for key, at in points.items() if at)
            return f"drag_to({_locator(onto[0], step.frame)}{where})"
        case operations.Scroll(area=None):
            return "scroll_into_view_if_needed()"
        case operations.WaitFor(until="element"):
            return "wait_for()"
        case _:
            return None


def _python_click(step: operations.Click) -> str:
    options = [] if step.button == "left" else [f"button={_q(step.button)}"]
    if step.offset is not None:
        options.append(f"position={_point(step.offset)}")
    if step.times == 3:
        options.append("click_count=3")
    method = "dblclick" if step.times == 2 else "click"
    return f"{method}({', '.join(options)})"


def _point(point: Sequence[float]) -> str:
    return f'{{"x": {point[0]:g}, "y": {point[1]:g}}}'


def _locator(one: ElementName, frames: Sequence[Sequence[ElementName]]) -> str:
    text = "page"
    for frame in frames:
        text += f"{_part(frame[0])}.content_frame"
    if one.near:  # the innermost element that has both the texts and the element
        own = replace(one, near=(), nth=None)
        inside = [f"{text}.get_by_text({_q(near)}, exact=True)" for near in one.near]
        filters = "".join(f".filter(has={part})" for part in (*inside, text + _part(own)))
        text += f'.locator("*"){filters}.last'
    return text + _part(one)


def _part(one: ElementName) -> str:
    nth = "" if one.nth is None else f".nth({one.nth})"
    exact = ", exact=True" if one.exact else ""
    match one.way:
        case "role":
            name = "" if one.name is None else f", name={_q(one.name)}{exact}"
            part = f".get_by_role({_q(one.value)}{name})"
        case "label" | "placeholder" | "text":
            part = f".get_by_{one.way}({_q(one.value)}{exact})"
        case "testId":
            part = f".get_by_test_id({_q(one.value)})"
        case "xpath":
            part = f".locator({_q(f'xpath={one.value}')})"
        case _:
            part = f".locator({_q(one.value)})"
    return part + nth


def _q(value: object) -> str:
    """Return a text, or a list of texts, as Python with double quotes."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
