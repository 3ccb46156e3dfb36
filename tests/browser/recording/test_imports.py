"""Imports from the DevTools Recorder and from Playwright's code generator, and the exports back."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from uncaged_browser.operations import write_operation
from uncaged_browser.recording.exports import to_playwright_python, to_recorder_json
from uncaged_browser.recording.imports import import_recording
from uncaged_browser.recording.recording import Recording, RecordingError

URL = "https://shop.test/"
SELECTORS = [
    ['aria/Add[role="button"]'],
    ["text/Add"],
    ["xpath///*[@id='add']/b"],
    ["pierce/#add"],
    ["#host", "#add"],
]
ALTERNATIVES = [
    {"role": "button", "name": "Add"},
    {"text": "Add"},
    {"xpath": "//*[@id='add']/b"},
    {"css": "#add"},
    {"css": "#host >> #add"},
]


def devtools(*steps: dict[str, Any]) -> Recording:
    document = {"title": "Buy", "steps": [{"type": "navigate", "url": URL}, *steps]}
    return import_recording(json.dumps(document), "recorder")


def bodies(recording: Recording) -> list[dict[str, Any]]:
    return [write_operation(step) for step in recording.steps[1:]]


ON: dict[str, Any] = {"selectors": SELECTORS, "target": "main"}
TARGET = {"target": ALTERNATIVES}
STEPS: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    (
        {**ON, "type": "click", "offsetX": 3, "offsetY": 4.5, "button": "secondary"},
        [{"do": "click", **TARGET, "button": "right", "offset": [3, 4.5]}],
    ),
    ({**ON, "type": "doubleClick"}, [{"do": "click", **TARGET, "times": 2}]),
    ({**ON, "type": "hover"}, [{"do": "hover", **TARGET}]),
    ({**ON, "type": "change", "value": "red"}, [{"do": "fill", **TARGET, "text": "red"}]),
    ({**ON, "type": "scroll"}, [{"do": "scroll", **TARGET}]),
    ({"type": "scroll", "x": 0, "y": 0}, [{"do": "scroll", "direction": "top"}]),
    ({"type": "keyDown", "key": "Enter"}, [{"do": "press", "key": "Enter"}]),
    ({"type": "keyUp", "key": "Enter"}, []),
    ({**ON, "type": "waitForElement"}, [{"do": "wait", **TARGET, "for": "element"}]),
    (
        {**ON, "type": "waitForElement", "visible": False},
        [{"do": "wait", **TARGET, "for": "gone"}],
    ),
    ({"type": "close"}, [{"do": "close"}]),
    (
        {**ON, "type": "click", "frame": [1, 0]},
        [
            {
                "do": "click",
                **TARGET,
                "frame": [
                    [{"xpath": "(//iframe|//frame)[2]"}],
                    [{"xpath": "(//iframe|//frame)[1]"}],
                ],
            }
        ],
    ),
    (
        {
            **ON,
            "type": "click",
            "assertedEvents": [{"type": "navigation", "url": f"{URL}cart?x=1", "title": "Cart"}],
        },
        [{"do": "click", **TARGET, "expect": {"url": f"{URL}cart", "title": "Cart"}}],
    ),
]


@pytest.mark.parametrize(("step", "expected"), STEPS)
def test_each_step_of_the_recorder_becomes_an_operation(
    step: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    """A recorder's step keeps its selectors, offsets, frames and asserted events."""
    recording = devtools(step)
    assert bodies(recording) == expected
    assert recording.left_out == ()


@pytest.mark.parametrize(
    "step",
    [
        {"type": "setViewport", "width": 1, "height": 2},
        {"type": "emulateNetworkConditions", "download": 1},
        {"type": "waitForExpression", "expression": "fetch('/steal')"},
        {"type": "customStep", "name": "mine", "parameters": {}},
        {"type": "fly"},
    ],
)
def test_a_step_that_cannot_be_carried_over_is_listed(step: dict[str, Any]) -> None:
    """A step without an operation is left out, and the recording says which and why."""
    recording = devtools(step)
    assert bodies(recording) == []
    assert len(recording.left_out) == 1
    assert recording.left_out[0].startswith(f"step 2: {step['type']}")


def test_keys_with_modifiers_become_one_press() -> None:
    """A modifier that is held while another key goes down is a combination."""
    keys = [("Down", "Control"), ("Down", "a"), ("Up", "a"), ("Up", "Control"), ("Down", "x")]
    recording = devtools(*({"type": f"key{way}", "key": key} for way, key in keys))
    assert [step["key"] for step in bodies(recording)] == ["Control+a", "x"]


def test_a_name_without_a_role_is_looked_for_in_fitting_ways() -> None:
    """An aria selector without a role tries the roles that its step fits, then label or text."""
    recording = devtools(
        {"type": "click", "selectors": ["aria/Go"]},
        {"type": "change", "selectors": [["aria/Mail"]], "value": "x"},
    )
    click, fill = bodies(recording)
    assert {"role": "link", "name": "Go"} in click["target"]
    assert {"label": "Mail"} in fill["target"]
    assert {"role": "button", "name": "Mail"} not in fill["target"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "torn"),
        ("{}", "malformed"),
        ('{"steps": []}', "malformed"),
        ('{"steps": [{"type": "navigate", "url": "file:///etc/passwd"}]}', "malformed"),
        ('{"steps": [{"type": "click"}]}', "malformed"),
        (
            json.dumps(
                {
                    "steps": [
                        {"type": "navigate", "url": f"https://h{number}.test/"}
                        for number in range(40)
                    ]
                }
            ),
            "foreign-hosts",
        ),
    ],
)
def test_a_wrong_file_of_the_recorder_is_refused(text: str, fault: str) -> None:
    """A file that is torn, no recording, or full of hosts is refused."""
    with pytest.raises(RecordingError) as caught:
        import_recording(text, "recorder")
    assert caught.value.fault == fault


SCRIPT = """
import re
from playwright.sync_api import Playwright, sync_playwright, expect

def run(playwright: Playwright) -> None:
    browser = playwright.chromium.launch(headless=False)
    context = browser.new_context()
    page = context.new_page()
    page.goto("https://shop.test/")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_label("Mail").fill("a@b.test")
    page.get_by_label("Mail").press("Enter")
    page.get_by_text("Row").nth(2).dblclick()
    page.locator("#list").get_by_role("link", name="More").first.click(button="right")
    page.get_by_test_id("agree").check()
    page.get_by_placeholder("Colour").select_option(["red"])
    page.locator("iframe[name=\\"pay\\"]").content_frame.get_by_role("textbox").fill("4")
    page.get_by_label("File").set_input_files("a.txt")
    with page.expect_popup() as page1_info:
        page.get_by_role("link", name="New").click()
    page1 = page1_info.value
    page1.get_by_text("One").drag_to(page1.get_by_text("Two"))
    expect(page1).to_have_title("Done")
    page.once("dialog", lambda dialog: dialog.dismiss())
    open("/tmp/codegen-ran", "w")
    page.evaluate("alert(1)")
    context.close()
    browser.close()

with sync_playwright() as playwright:
    run(playwright)
"""


def test_a_script_of_the_code_generator_becomes_operations() -> None:
    """Each call on a locator is an operation; what has none is listed, and nothing is executed."""
    recording = import_recording(SCRIPT, "playwright")
    steps = bodies(recording)
    assert recording.url == URL
    assert [step["do"] for step in steps] == [
        *("click", "fill", "press", "click", "click", "check", "select", "fill", "upload"),
        *("click", "drag"),
    ]
    assert steps[0]["target"][0] == {"role": "button", "name": "Add"}
    assert steps[3] == {
        "do": "click",
        "target": [
            {"text": "Row", "nth": 2, "exact": False},
        ],
        "times": 2,
    }
    assert steps[4]["target"] == [
        {"css": '#list >> internal:role=link[name="More"i] >> nth=0'},
    ]
    assert steps[7]["frame"] == [[{"css": 'iframe[name="pay"]'}]]
    assert steps[10]["onto"] == [{"text": "Two", "exact": False}]
    assert steps[10]["expect"] == {"title": "Done"}
    assert [line.partition(":")[0] for line in recording.left_out] == [
        *("line 24", "line 25", "line 26"),
    ]
    assert not Path("/tmp/codegen-ran").exists()


def test_a_script_that_is_no_python_is_refused() -> None:
    """A torn script, and one that loads no address, are errors."""
    for text in ("page.goto(", "x = 1", "(" * 10_000):
        with pytest.raises(RecordingError):
            import_recording(text, "playwright")


def test_a_recording_goes_to_the_recorder_and_back() -> None:
    """The recorder's JSON of an imported recording imports as the same steps."""
    steps = [step for step, _ in STEPS if step["type"] not in ("close", "hover")]
    recording = devtools(*steps)
    again = import_recording(to_recorder_json(recording), "recorder")
    written = [{key: one for key, one in step.items() if key != "offset"} for step in bodies(again)]
    former = [
        {key: one for key, one in step.items() if key != "offset"} for step in bodies(recording)
    ]
    assert written == former


def test_a_recording_goes_to_a_playwright_script_and_back() -> None:
    """The exported script is Python whose import has the same operations on the same first
    alternatives.
    """
    recording = import_recording(SCRIPT, "playwright")
    text = to_playwright_python(recording)
    ast.parse(text)
    again = import_recording(text, "playwright")
    assert [step["do"] for step in bodies(again)] == [step["do"] for step in bodies(recording)]
    assert [step.get("target", [None])[0] for step in bodies(again)] == [
        step.get("target", [None])[0] for step in bodies(recording)
    ]


def test_a_text_of_a_recording_is_never_code_of_the_export() -> None:
    """Quotes, line ends and emoji in recorded texts are literals of the exported script."""
    value = 'x"); import os; os.system("id")\n\u2028😀\\'
    recording = devtools({**ON, "type": "change", "value": value})
    tree = ast.parse(to_playwright_python(recording))
    [call] = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "fill"
    ]
    assert ast.literal_eval(call.args[0]) == value


def side(*commands: tuple[str, str, str], **more: object) -> str:
    """JSON of Selenium IDE."""
    listed = [
        {
            "command": word,
            "target": target,
            "targets": [[target, "x"], ["css=.a", "css:finder"]],
            "value": value,
        }
        for word, target, value in commands
    ]
    tests = [{"name": "Order", "commands": listed}, {"name": "Other", "commands": []}]
    return json.dumps({"version": "2.0", "url": URL, "tests": tests, **more})


def test_a_project_of_selenium_ide_becomes_operations() -> None:
    """The commands of its first test are operations with all their locators, in their frames; what
    has no operation is listed.
    """
    recording = import_recording(
        side(
            ("setWindowSize", "800x600", ""),
            ("open", "/find", ""),
            ("type", "id=q", "lamp"),
            ("sendKeys", "id=q", "s${KEY_ENTER}"),
            ("assertTitle", "Found", ""),
            ("click", "linkText=Order", ""),
            ("selectFrame", "index=1", ""),
            ("select", "name=speed", "label=Fast"),
            ("selectFrame", "relative=parent", ""),
            ("check", "name=gift", ""),
            ("//click", "id=off", ""),
            ("assertText", "css=h1", "Thanks"),
            ("executeScript", "return 1", "x"),
        ),
        "selenium",
    )
    steps = bodies(recording)
    assert recording.url == f"{URL}find"
    assert [step["do"] for step in steps] == [
        *("fill", "type", "press", "click", "select", "check", "wait"),
    ]
    assert steps[0]["target"] == [{"css": '[id="q"]'}, {"css": ".a"}]
    assert steps[2]["key"] == "Enter" and steps[2]["expect"] == {"title": "Found"}
    assert steps[3]["target"][0] == {"role": "link", "name": "Order"}
    assert steps[4]["frame"] == [[{"xpath": "(//iframe|//frame)[2]"}]] and "frame" not in steps[5]
    assert steps[6]["target"] == [{"text": "Thanks"}]
    assert [line.partition(":")[0] for line in recording.left_out] == [
        *("command 1", "command 11", "command 13", "test 'Other'"),
    ]
    for text, fault in (
        (side()[:-9], "torn"),
        (side(version="3.0"), "newer"),
        (side(tests=[]), "malformed"),
        ("[]", "malformed"),
        (side(("click", "id=q", "")), "malformed"),
    ):
        with pytest.raises(RecordingError) as caught:
            import_recording(text, "selenium")
        assert caught.value.fault == fault
