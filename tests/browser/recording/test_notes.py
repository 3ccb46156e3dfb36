"""Notes of a page's script as steps."""

from __future__ import annotations

import json
from typing import Any

from uncaged_browser.recording.notes import MAX_LINE, PageState, StepNotes
from uncaged_browser.recording.recording import MAX_STEPS, Recording, read_recording

URL = "https://shop.test/"


def click(number: int, **more: Any) -> dict[str, Any]:
    return {"kind": "click", "times": 1, "target": [{"css": f"#b{number}"}], "top": True, **more}


def recording_of(notes: StepNotes) -> Recording:
    """The recording of notes, read back from its file."""
    steps, left_out = tuple(notes.steps), tuple(notes.left_out)
    found = Recording(name="x", url=URL, steps=steps, left_out=left_out)
    return read_recording(json.dumps(found.document()))


def test_a_flood_of_notes_leaves_a_recording_that_can_be_read() -> None:
    """A page that reports without end, and texts of any size, fill a recording up to its limits;
    what is left out is said.
    """
    long = [{"css": "x" * 2_000, "nth": number} for number in range(20)]
    for many in ({}, {"target": long}):
        notes = StepNotes()
        for number in range(MAX_STEPS + 50):
            notes.add({**click(number), **many, "button": "left"})
        found = recording_of(notes)
        assert 40 < len(found.steps) <= MAX_STEPS
        assert found.left_out == (f"all after step {len(found.steps):,}: the recording is full",)
    notes = StepNotes()
    for number in range(30):  # what is typed grows
        for value in ("x", "x" * 200_000):
            notes.add({"kind": "fill", "value": value, "target": [{"css": f"#f{number}"}]})
    found = recording_of(notes)
    assert found.left_out == (f"all after step {len(found.steps)}: the recording is full",)
    notes = StepNotes()
    notes.add({"kind": "fill", "value": "x" * (5 << 20), "target": [{"css": "#a"}]})
    for _ in range(2_000):
        notes.add({"kind": "dance"})
    found = recording_of(notes)
    assert found.steps == () and len(found.left_out) == 100
    assert found.left_out[0] == "fill: it is larger than 256 KiB"


def test_half_of_a_character_is_noted_as_a_mark() -> None:
    """A page's texts that no file can hold do not end a recording."""
    notes = StepNotes()
    half = "Half \ud800"
    state = {"url": URL, "title": half, "heading": half}
    notes.add(click(1, state={"url": URL, "title": "x", "heading": "x"}))
    notes.add(click(2, target=[{"text": half}], state=state))
    found = recording_of(notes)
    assert [str(step.expect and step.expect.title) for step in found.steps] == [
        "Half \ufffd",
        "None",
    ]
    notes.settle(PageState.of({"url": URL, "title": f"{half}!"}))
    notes.leave(half + "x" * MAX_LINE)
    found = recording_of(notes)
    assert found.steps[-1].expect is not None and found.steps[-1].expect.title == "Half \ufffd!"
    [line] = found.left_out
    assert line.startswith("Half \ufffdx") and len(line) == MAX_LINE


def test_a_password_in_the_address_of_a_page_is_not_noted() -> None:
    """The expectation of a step has the address without name and password."""
    notes = StepNotes()
    notes.add(click(1, state={"url": URL, "title": "x", "heading": "x"}))
    notes.settle(PageState.of({"url": "https://ada:s3cret@shop.test/there"}))
    expect = notes.steps[0].expect
    assert expect is not None and expect.url == "https://shop.test/there"
