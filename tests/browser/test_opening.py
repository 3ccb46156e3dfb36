"""Public interface of the browser: a browser that a program opens, records and replays in."""

from __future__ import annotations

import asyncio

import pytest
import uncaged_browser
from testbed.webserver import serving, text
from uncaged_browser import Recorder, open_browser, read_operation, replay
from uncaged_browser.recording.replaying import RecordingReplay

PAGE = """<!doctype html><title>T</title><label>Name <input></label>
<button onclick="document.title = 'T ' + document.querySelector('input').value">Save</button>"""


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_an_opened_browser_is_recorded_and_replayed_in() -> None:
    """The recorder takes the control that `open_browser` returns, and so does a replay."""

    async def run() -> tuple[RecordingReplay, str]:
        opened = await open_browser()
        try:
            recorder = Recorder(opened)
            await recorder.start()
            page = await (await opened.connected()).context.new_page()
            await page.goto(f"{web.url}/")
            await page.get_by_label("Name").press_sequentially("Ada")
            await opened.perform(read_operation({"do": "click", "target": {"text": "Save"}}))
            recording = await recorder.stop()
            assert [step.do for step in recording.steps] == ["navigate", "fill", "click"]
            done = await replay(recording, opened, {"name": "Bob"})
            return done, await page.title()
        finally:
            await opened.aclose()

    with serving(lambda _: text(PAGE, "text/html")) as web:
        done, title = asyncio.run(run())
    assert done.succeeded, done.steps[-1]
    assert title == "T Bob"


def test_the_package_has_its_public_names() -> None:
    """Each listed name is there, and no other one."""
    for name in uncaged_browser.__all__:
        assert getattr(uncaged_browser, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'unknown'"):
        _ = uncaged_browser.unknown
