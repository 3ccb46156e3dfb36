"""Healing on pages in a real browser: what is found, and pages that offer the wrong element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from testbed.browser_harness import BrowserHarness
from testbed.webserver import Reply, Seen, WebServer, serving, text
from uncaged_browser.operations import Navigate
from uncaged_browser.recording.recorder import Recorder
from uncaged_browser.recording.recording import Recording
from uncaged_browser.recording.replaying import RecordingReplay, replay
from uncaged_bundles.records import replace as record_replace

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

OLD = """<label>Title <input></label><p>of the note</p>
<button type=button onclick="document.title = 'saved'">Save</button>"""
FIELD = "<label>Title <input></label><p>of the note</p>"
DONE = "onclick=\"document.title = 'saved'\""
WRONG = "onclick=\"document.title = 'wrong'\""
DESIGNS = {
    "old": OLD,
    "reworded": f"<p><button type=button {DONE}>Save changes</button></p>{FIELD}",
    "another meaning": f"{FIELD}<button type=button {WRONG}>Delete account</button>",
    "two equal": f"{FIELD}<button type=button {WRONG}>Save now</button><button type=button {WRONG}>Save now</button>",
    "hidden": f"{FIELD}<button type=button {WRONG} style='opacity:0'>Save now</button>",
    "outside": f"{FIELD}<button type=button {WRONG} style='position:absolute;left:-900px'>Save now</button>",
    "disabled": f"{FIELD}<button type=button {WRONG} disabled>Save now</button>",
    "another host": f"{FIELD}<form action=https://evil.test/><button>Save now</button></form>",
    "two equal frames": f'{FIELD}<iframe srcdoc="<button>Save</button>"></iframe><iframe srcdoc="<button>Save</button>"></iframe>',
    "a frame": f'{FIELD}<iframe srcdoc="<button>Save now</button>"></iframe>',
}


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    def answer(request: Seen) -> Reply:
        design = DESIGNS[request.path.strip("/").replace("-", " ")]
        page = f"<!doctype html><title>Note</title><h1>Edit</h1>{design}"
        return text(page, "text/html; charset=utf-8")

    with serving(answer) as server:
        yield server


@pytest.fixture(scope="module")
def recording(harness: BrowserHarness, web: WebServer) -> Recording:
    """A note that is written and saved."""

    async def record() -> Recording:
        async with harness.context() as context:
            page = await context.context.new_page()
            recorder = Recorder(context)
            await recorder.start()
            await page.goto(f"{web.url}/old")
            await page.get_by_label("Title").fill("Milk")
            await page.get_by_role("button", name="Save").click()
            return await recorder.stop()

    return harness.run(record())


def replayed(
    harness: BrowserHarness, recording: Recording, web: WebServer, design: str
) -> tuple[RecordingReplay, str]:
    """Replay on a design: the replay, and the page's title after it."""
    url = f"{web.url}/{design.replace(' ', '-')}"
    steps = [
        replace(step, timeout_s=1.0, expect=None) if step.effect == "acts" else step
        for step in recording.steps
    ]
    moved = record_replace(recording, url=url, steps=(Navigate(url=url), *steps[1:]))

    async def run() -> tuple[RecordingReplay, str]:
        async with harness.context() as context:
            done = await replay(moved, context, heal="propose")
            return done, await context.context.pages[-1].title()

    return harness.run(run())


def test_a_recorder_notes_facts_without_values(recording: Recording) -> None:
    """The facts of a field have its names and neighbours, never what was typed."""
    fill = recording.document()["steps"]
    assert isinstance(fill, list)
    facts = fill[1]["facts"]
    assert facts["label"] == "Title" and "of the note" in facts["near"]
    assert "Milk" not in str(facts)


def test_a_reworded_page_is_healed_and_proposed(
    harness: BrowserHarness, recording: Recording, web: WebServer
) -> None:
    """The replay says what it used; the proposed recipe names the new element."""
    done, title = replayed(harness, recording, web, "reworded")
    assert (done.succeeded, title) == (True, "saved")
    [healed] = done.steps[2].healed
    assert healed.after == 'button "Save changes"' and healed.score > 0.8
    assert done.proposed is not None
    steps = done.proposed["steps"]
    assert isinstance(steps, list)
    assert steps[2]["target"][0] == {"role": "button", "name": "Save changes"}


@pytest.mark.parametrize("design", [one for one in DESIGNS if one not in ("old", "reworded")])
def test_a_wrong_element_is_never_used(
    harness: BrowserHarness, recording: Recording, web: WebServer, design: str
) -> None:
    """A look-alike, equal ones, invisible, disabled and foreign ones: the step fails as before."""
    done, title = replayed(harness, recording, web, design)
    assert (done.succeeded, title, len(done.steps)) == (False, "Note", 3)
    last = done.steps[-1]
    assert last.problem is not None and last.problem.kind == "not-found" and not last.healed
    assert last.not_healed and done.proposed is None


FRAMED = """<button onclick="parent.document.title = 'saved'">WORD</button>"""
PLACES = {
    "framed": "<iframe title=Editor src=/inside/Save></iframe>",
    "renamed frame": "<p><iframe title=Ads srcdoc='<button>Buy</button>'></iframe>"
    "<section><iframe title=Composer src=/page/Save></iframe></section></p>",
    "reworded in a renamed frame": "<div><iframe src=/page/Keep></iframe></div>",
    "two such frames": "<div><iframe src=/page/Save></iframe><iframe src=/page/Save></iframe></div>",
}


@pytest.fixture(scope="module")
def framed() -> Iterator[WebServer]:
    def answer(request: Seen) -> Reply:
        place = PLACES.get(request.path.strip("/").replace("-", " "))
        inside = FRAMED.replace("WORD", request.path.rpartition("/")[2])
        body = inside if place is None else f"<title>Note</title><h1>Edit</h1>{place}"
        return text(f"<!doctype html>{body}", "text/html; charset=utf-8")

    with serving(answer) as server:
        yield server


def test_a_frame_is_searched_for(harness: BrowserHarness, framed: WebServer) -> None:
    """The element of a frame is found in another one of the same host, by its names or reworded,
    and the proposed recipe has the new frame; in one of two equal frames it is not.
    """

    async def record() -> Recording:
        async with harness.context() as context:
            page = await context.context.new_page()
            recorder = Recorder(context)
            await recorder.start()
            await page.goto(f"{framed.url}/framed")
            button = page.frame_locator("iframe").get_by_role("button")
            await button.click()
            await button.click()
            return await recorder.stop()

    recording = harness.run(record())
    for design in PLACES:
        done, title = replayed(harness, recording, framed, design)
        healed = [one for step in done.steps for one in step.healed]
        if design == "two such frames":
            assert not done.succeeded and not healed and title == "Note"
            continue
        assert (done.succeeded, title) == (True, "saved"), (design, done.steps[-1])
        assert bool(healed) is (design != "framed")
        if healed:
            assert done.proposed is not None
            steps = done.proposed["steps"]
            assert isinstance(steps, list) and "/page/" in str(steps[1]["frame"])


BOX = """<style>input { position: absolute; opacity: 0; width: 1px; height: 1px }</style>
<label><input type=checkbox onchange="document.title = 'agreed'"><i>&#9633;</i> WORD</label><button>Next</button>"""


def test_a_check_box_that_its_label_draws_is_found(harness: BrowserHarness) -> None:
    """A transparent check box is seen by its label, so a reworded one takes its place."""

    async def run() -> tuple[RecordingReplay, str]:
        async with harness.context() as context:
            page = await context.context.new_page()
            recorder = Recorder(context)
            await recorder.start()
            await page.goto(f"{web.url}/")
            await page.get_by_text("I agree").click()
            await page.get_by_role("button").click()
            recording = await recorder.stop()
        shown[0] = BOX.replace("WORD", "Agree to the terms")
        steps = [replace(step, expect=None) for step in recording.steps]
        async with harness.context() as context:
            moved = record_replace(recording, steps=tuple(steps))
            done = await replay(moved, context, heal="propose")
            return done, await context.context.pages[-1].title()

    shown = [BOX.replace("WORD", "I agree to the terms")]
    with serving(lambda _: text(f"<!doctype html>{shown[0]}", "text/html")) as web:
        done, title = harness.run(run())
    assert done.succeeded, done.steps[-1]
    assert done.steps[1].healed and title == "agreed"
