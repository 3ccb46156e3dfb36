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


NUMBERED = {
    "recorder": {"steps": [{"type": "navigate", "url": URL}, {**ON, "type": "hover", "x": "N"}]},
    "selenium": {"url": URL, "tests": ["N"]},
    "recording": {"format": 1, "name": "x", "url": URL, "steps": [{"do": "zoom", "factor": "N"}]},
}


@pytest.mark.parametrize("form", list(NUMBERED))
def test_numbers_of_any_length_are_refused(form: Any) -> None:
    """A number that Python does not read is a fault of the file."""
    text = json.dumps(NUMBERED[form])
    with pytest.raises(RecordingError, match="whole JSON"):
        import_recording(text.replace('"N"', "1" * 5_000), form)


def test_a_number_that_no_float_holds_is_refused() -> None:
    """A whole number of hundreds of digits would overflow when it is used."""
    for form, offset in (("recording", {"factor": 10**400}), ("recorder", {"offsetX": 10**400})):
        step = {"do": "zoom"} if form == "recording" else {**ON, "type": "click", "offsetY": 1}
        start = {"type": "navigate", "url": URL} if form == "recorder" else {"do": "reload"}
        document = {"steps": [start, {**step, **offset}]}
        ours = {"format": 1, "name": "x", "url": URL} if form == "recording" else {}
        with pytest.raises(RecordingError, match="number"):
            import_recording(json.dumps({**ours, **document}), form)  # type: ignore[arg-type]


def test_a_recording_without_an_address_is_refused() -> None:
    """A file that loads nothing, or the empty page alone, has no host that its flow is for."""
    empty = "about:blank"
    ours = {"format": 1, "name": "x", "url": empty, "steps": [{"do": "navigate", "url": empty}]}
    theirs = {"steps": [{"type": "navigate", "url": empty}]}
    for form, document in (("recorder", theirs), ("recording", ours)):
        with pytest.raises(RecordingError, match="address"):
            import_recording(json.dumps(document), form)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"selectors": ["#" + "a" * 3_000]}, "at most 2000"),
        ({"selectors": ["text/"]}, "is empty"),
        ({"frame": [0] * 11}, "at most 10 are followed"),
    ],
)
def test_a_step_that_no_flow_can_perform_is_left_out(step: dict[str, Any], reason: str) -> None:
    """A value beyond the limits of an operation is found when the file is read."""
    recording = devtools({"type": "click", "selectors": ["#a"], **step}, {**ON, "type": "hover"})
    assert [one.do for one in recording.steps[1:]] == ["hover"]
    assert recording.left_out[0].startswith("step 2: click") and reason in recording.left_out[0]


def test_a_malformed_address_of_an_event_is_no_expectation() -> None:
    """The step itself is kept."""
    event = {"type": "navigation", "url": "http://[x"}
    [body] = bodies(devtools({**ON, "type": "hover", "assertedEvents": [event]}))
    assert "expect" not in body


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


def script(*lines: str) -> Recording:
    body = "".join(
        f"    {line}\n" for line in ("page = context.new_page()", f'page.goto("{URL}")', *lines)
    )
    return import_recording(f"def run(playwright):\n{body}", "playwright")


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("click(click_count=3)", {"do": "click", "times": 3}),
        ("wait_for(state='hidden')", {"do": "wait", "for": "gone"}),
        ("set_checked(checked=True)", {"do": "check"}),
        ("select_option(label='Red')", {"do": "select", "options": ["Red"]}),
        ("press(key='Enter', timeout=5)", {"do": "press", "key": "Enter"}),
        (
            "drag_to(page.locator('#b'), target_position={'x': 1, 'y': 2})",
            {"do": "drag", "onto": [{"css": "#b"}], "onto_offset": [1, 2]},
        ),
    ],
)
def test_named_arguments_of_a_call_are_carried_over(call: str, body: dict[str, Any]) -> None:
    """An argument means the same by its name as by its place."""
    recording = script(f"page.locator('#a').{call}")
    assert bodies(recording) == [{**body, "target": [{"css": "#a"}]}], recording.left_out


@pytest.mark.parametrize(
    "line",
    [
        "page.get_by_role('button', name='x', pressed=True).click()",
        "page.locator('div', has_text='x').click()",
        "page.locator('div').filter(has_text='x', has_not_text='y').click()",
        "page.locator('#a').click(modifiers=['Shift'])",
        "page.locator('#a').click(**more)",
        "page.locator('#a').click(button=5)",
        "page.locator('#a').click(position={'x': 1})",
        "page.locator('#a').nth('x').click()",
        "page.locator('#a').select_option(index=2)",
        "page.locator('#a').check(checked=False)",
        "page.locator('#a').wait_for(state=state)",
        "page.locator('#a').fill(os.environ[name])",
        "page.locator('#a').fill(os.environ['A B'])",
        "page.locator('#a').fill('\\ud800')",
        "page.locator('').click()",
        "page.keyboard.press('')",
        "expect(page).to_have_title('')",
        "expect(page).to_have_title('x', ignore_case=True)",
    ],
)
def test_a_call_that_would_lose_something_is_listed(line: str) -> None:
    """What an argument says of the element or the action is never dropped: the step would be
    another one.
    """
    recording = script(line)
    assert recording.steps[1:] == () and recording.steps[0].expect is None
    [left] = recording.left_out
    assert left.startswith("line 4: ")


def test_steps_of_a_script_act_in_their_own_tabs() -> None:
    """A step on a tab that was used before switches back to it; a tab whose address is not known is
    left alone, and so is the end of a script.
    """
    lines = (
        "page.get_by_text('New').click()",
        "page1.get_by_text('In the new one').click()",
        "page.get_by_text('Back').click()",
        "page1.get_by_text('Where?').click()",
        "page2 = context.new_page()",
        "page2.goto('https://shop.test/help')",
        "page.get_by_text('First').click()",
        "page2.get_by_text('Help').click()",
        "page2.close()",
        "page.close()",
    )
    recording = script(*lines)
    back, there = ({"do": "switch", "words": url} for url in (URL, f"{URL}help"))
    clicks = [
        {"do": "click", "target": [{"text": name, "exact": False}]}
        for name in ("New", "In the new one", "Back", "First", "Help")
    ]
    opened = {"do": "open", "url": f"{URL}help"}
    assert bodies(recording) == [
        *(*clicks[:2], back, clicks[2], opened, back, clicks[3], there, clicks[4]),
    ]
    assert recording.left_out == ("line 7: page1 is another tab, whose address is not known",)
    frames = script("page.frame_locator('#f').nth(1).get_by_text('x').click()")
    assert bodies(frames)[0]["frame"] == [[{"css": "#f >> nth=1"}]]


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


def test_a_triple_click_stays_one() -> None:
    """A script says the number; the Recorder has no such step, so it is not a single click."""
    recording = script("page.locator('#a').click(click_count=3)")
    assert bodies(import_recording(to_playwright_python(recording), "playwright")) == bodies(
        recording
    )
    last = json.loads(to_recorder_json(recording))["steps"][-1]
    assert (last["type"], last["parameters"]["times"]) == ("customStep", 3)


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
    broken = side(
        ("open", "http://[x", ""),
        ("open", "/", ""),
        ("selectFrame", "index=²", ""),
        ("type", "id=a", "\ud800"),
        ("assertTitle", "", ""),
        ("open", "/\ud800", ""),
        ("sendKeys", "id=a", "\ud800"),
        ("assertText", "id=a", "\ud800"),
    )
    left = import_recording(broken, "selenium").left_out
    assert [line.partition(":")[0] for line in left[:7]] == [
        f"command {number}" for number in (1, 3, 4, 5, 6, 7, 8)
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
