"""Recordings made in a browser, and replayed on other data: forms, frames, shadow DOM, routes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from testbed.browser_harness import BrowserHarness
from testbed.shop import open_shop
from testbed.webserver import Reply, Seen, serving, text
from uncaged_browser.operations import write_operation
from uncaged_browser.recording.recorder import Recorder
from uncaged_browser.recording.recording import Recording, read_recording
from uncaged_browser.recording.replaying import RecordingReplay, replay
from uncaged_bundles.records import replace

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

Actions = Callable[["Page"], Awaitable[object]]


async def record(harness: BrowserHarness, url: str, actions: Actions) -> Recording:
    """Return what the recorder noted while a person's program used a page."""
    async with harness.context() as context:
        page = await context.context.new_page()
        recorder = Recorder(context)
        await recorder.start()
        await page.goto(url)
        await actions(page)
        await page.wait_for_load_state()
        return await recorder.stop()


async def replayed(
    harness: BrowserHarness, recording: Recording, **parameters: str
) -> RecordingReplay:
    async with harness.context() as context:
        return await replay(recording, context, parameters)


def noted(harness: BrowserHarness, body: str, actions: Actions) -> list[dict[str, Any]]:
    """Return the steps on one page after its load."""
    with serving(lambda _: text(f"<!doctype html><title>T</title>{body}", "text/html")) as web:
        recording = harness.run(record(harness, f"{web.url}/", actions))
    assert recording.left_out == ()
    return [write_operation(step) for step in recording.steps[1:]]


async def order(page: Page) -> None:
    """Order something, as a person would."""
    await page.get_by_label("Search").click()
    await page.get_by_label("Search").press_sequentially("blue lamp")
    await page.get_by_label("Search").press("Enter")
    await page.get_by_role("link", name="Order Blue Lamp").click()
    await page.get_by_label("Mail").press_sequentially("ada@shop.test")
    await page.get_by_label("Password").press_sequentially("hunter2")
    await page.get_by_label("Gift wrap").check()
    frame = page.frame_locator("iframe")
    await frame.get_by_label("City").fill("Bern")
    await frame.get_by_label("Speed").select_option("Fast")
    await page.get_by_role("button", name="Confirm order").click()
    await page.get_by_role("heading", name="Thanks").wait_for()


@pytest.fixture(scope="module")
def ordered(harness: BrowserHarness) -> Recording:
    """The recording of an order."""
    with open_shop(1) as shop:
        recording = harness.run(record(harness, f"{shop.web.url}/", order))
        assert shop.orders[0]["password"] == "hunter2"
    return replace(recording, parameters={"item": "Blue Lamp"})


def test_a_recording_has_what_was_done_and_no_password(ordered: Recording) -> None:
    """Typing is one fill without the click before it, a password is the name of a secret, and the
    steps in a frame name the frame.
    """
    steps: list[Any] = [write_operation(step) for step in ordered.steps]
    assert [step["do"] for step in steps] == [
        *("navigate", "fill", "press", "click", "fill", "fill", "check", "fill", "select", "click"),
    ]
    assert "hunter2" not in ordered.text()
    assert steps[5]["text"] == "secret:PASSWORD"
    assert steps[3]["target"][0] == {"role": "link", "name": "Order Blue Lamp"}
    assert {"text": "Order Blue Lamp"} in steps[3]["target"]
    assert {"css": 'iframe[name="x"]'} not in steps[7]["frame"][0]
    assert steps[7]["frame"] and steps[8]["frame"]
    assert steps[9]["target"][0] == {"role": "button", "name": "Confirm order"}
    assert all("xpath" not in one for one in steps[9]["target"]), "xpath sees no shadow root"
    assert steps[2]["expect"] == {
        "url": ordered.url.rstrip("/") + "/find",
        "title": "Find",
        "heading": "Found: blue lamp",
    }
    assert steps[9]["expect"]["heading"] == "Thanks for order *"
    assert steps[9]["expect"]["url"].endswith("/thanks/*")
    assert read_recording(ordered.text()) == ordered


@pytest.mark.parametrize(("seed", "item"), [(2, "Blue Lamp"), (3, "Red Chair"), (4, "Grey Carpet")])
def test_a_recording_is_replayed_on_other_data(
    harness: BrowserHarness, ordered: Recording, seed: int, item: str
) -> None:
    """On other data and with other values the same task is done, and nothing else."""
    plain = replace(ordered, steps=without_secret(ordered))
    with open_shop(seed) as shop:
        values = {"search": item.lower(), "item": item, "mail": "b@c.test", "city": "Basel"}
        done = harness.run(replayed(harness, plain, origin=shop.web.url, **values))
        assert done.succeeded, done.steps[-1]
        assert not any(step.alternative for step in done.steps)
        assert [
            {key: one for key, one in sent.items() if key != "password"} for sent in shop.orders
        ] == [
            {"item": item, "mail": "b@c.test", "city": "Basel", "speed": "Fast", "gift": "yes"},
        ]


def without_secret(recording: Recording) -> tuple[Any, ...]:
    """The steps without the password, which no session types here."""
    return tuple(
        step for step in recording.steps if "secret:" not in str(write_operation(step).get("text"))
    )


@pytest.mark.parametrize("change", ["redesigned", "missing"])
def test_a_changed_page_is_drift_and_never_another_element(
    harness: BrowserHarness, ordered: Recording, change: str
) -> None:
    """Where the recorded element is gone or has another name, the replay stops before it; no order
    is sent.
    """
    plain = replace(ordered, steps=without_secret(ordered))
    with open_shop(5) as shop:
        shop.redesigned = change == "redesigned"
        values = {"item": "Blue Lamp" if shop.redesigned else "Pink Piano"}
        done = harness.run(replayed(harness, plain, origin=shop.web.url, **values))
        assert shop.orders == []
    assert not done.succeeded
    problem = done.steps[-1].problem
    assert problem is not None
    assert (len(done.steps), problem.kind) == (4, "not-found")


def test_a_page_that_differs_after_a_step_is_drift(
    harness: BrowserHarness, ordered: Recording
) -> None:
    """A replay whose page differs from the expectation ends there, with both sides."""
    with open_shop(1) as shop:

        def answer(seen: Seen) -> Reply:
            sold = text("<h1>Sold out</h1>", "text/html")
            return sold if "find" in seen.path else shop.answer(seen)

        with serving(answer) as web:
            done = harness.run(replayed(harness, ordered, origin=web.url))
    assert not done.succeeded
    [title, heading] = done.steps[-1].drift
    assert title["what"] == "title"
    assert (heading["expected"], heading["found"]) == ("Found: blue lamp", ["Sold out"])


def test_routes_of_one_page_are_expectations_and_no_steps(harness: BrowserHarness) -> None:
    """A page that changes its address by script is loaded once; later addresses are expected."""

    async def walk(page: Page) -> None:
        await page.get_by_role("button", name="Goods").click()
        await page.get_by_role("link", name="To the shop").click()
        await page.get_by_label("Search").fill("x")

    with open_shop(1) as shop:
        recording = harness.run(record(harness, f"{shop.web.url}/app/", walk))
        steps: list[Any] = [write_operation(step) for step in recording.steps]
        assert [step["do"] for step in steps] == ["navigate", "click", "click", "fill"]
        assert steps[1]["expect"]["url"].endswith("/app/goods")
        assert steps[1]["expect"]["heading"] == "Goods"
        done = harness.run(replayed(harness, recording, search="y"))
        assert done.succeeded, done.steps[-1]


def test_addresses_that_a_person_opens_are_steps(harness: BrowserHarness) -> None:
    """An opened address is a step; those that links and scripts lead to are none."""

    async def browse(page: Page) -> None:
        base = page.url
        await page.goto(f"{base}app/")
        await page.get_by_role("button", name="Help").click()
        await page.goto(f"{base}find?q=chair")
        await page.get_by_role("link", name="Order Red Chair").click()
        await page.wait_for_url("**/order/*")

    with open_shop(1) as shop:
        recording = harness.run(record(harness, f"{shop.web.url}/", browse))
    steps: list[Any] = [write_operation(step) for step in recording.steps]
    assert [step.get("url", step["do"]).replace(shop.web.url, "") for step in steps] == [
        *("/", "/app/", "click", "/find?q=chair", "click"),
    ]


def test_a_password_in_an_address_is_not_noted(harness: BrowserHarness) -> None:
    """Name and password before a host are in no step, expectation or address of a recording."""

    async def use(page: Page) -> None:
        await page.get_by_role("button", name="Go").click()
        await page.wait_for_function("document.title === 'Gone'")

    body = "<title>T</title><button onclick=\"history.pushState({}, '', '/there'); document.title = 'Gone'\">Go</button>"
    with serving(lambda _: text(f"<!doctype html>{body}", "text/html")) as web:
        url = web.url.replace("://", "://ada:s3cret@")
        recording = harness.run(record(harness, f"{url}/", use))
    assert "s3cret" not in recording.text() and "ada" not in recording.text()
    assert recording.url == f"{web.url}/"
    expect = recording.steps[1].expect
    assert expect is not None and expect.url == f"{web.url}/there"
    assert recording.left_out == ("the name and password in an address",)


HANGING = """<button>First</button><button onclick="setTimeout(() => {
  const request = new XMLHttpRequest(); request.open('GET', '/hangs', false); request.send();
  for (;;); }, 50)">Hang</button>"""


def test_a_page_that_hangs_does_not_keep_a_recording(harness: BrowserHarness) -> None:
    """The recording of a page whose script never ends is returned, without the page's new state."""

    async def run(url: str) -> Recording:
        async with harness.context() as context:
            page = await context.context.new_page()
            recorder = Recorder(context)
            await recorder.start()
            await page.goto(url)
            await page.get_by_role("button", name="First").click()
            await page.get_by_role("button", name="Hang").click(no_wait_after=True)
            assert await asyncio.to_thread(hangs.wait, 30)
            return await recorder.stop()

    def answer(request: Seen) -> Reply:
        if request.path == "/hangs":
            hangs.set()
        return text(f"<!doctype html>{HANGING}", "text/html")

    hangs = threading.Event()
    with serving(answer) as web:
        recording = harness.run(run(f"{web.url}/"))
    assert [step.do for step in recording.steps] == ["navigate", "click", "click"]


def test_steps_in_several_tabs_are_replayed_in_theirs(harness: BrowserHarness) -> None:
    """A tab that a page opened is the current one; a return to a former tab is a step, and no step
    expects the page of another tab.
    """

    def answer(request: Seen) -> Reply:
        path = request.path
        body = "<a href=/two target=_blank>New</a>" if path == "/one" else ""
        return text(
            f"<title>{path}</title><h1>At {path}</h1>{body}<label>Name <input></label>", "text/html"
        )

    async def use(page: Page) -> None:
        async with page.context.expect_page() as info:
            await page.get_by_text("New").click()
        other = await info.value
        await other.get_by_label("Name").fill("x")
        await page.get_by_label("Name").fill("y")
        third = await page.context.new_page()
        await third.goto(page.url.replace("one", "three"))
        await third.get_by_label("Name").fill("z")

    with serving(answer) as web:
        recording = harness.run(record(harness, f"{web.url}/one", use))
        steps: list[Any] = [write_operation(step) for step in recording.steps]
        assert [step["do"] for step in steps] == [
            *("navigate", "click", "fill", "switch", "fill", "open", "fill"),
        ]
        assert steps[1]["expect"]["heading"] == "At /two"
        assert all("expect" not in step for step in (steps[2], steps[4], steps[6]))
        done = harness.run(replayed(harness, recording))
        assert done.succeeded, done.steps[-1]


Case = tuple[str, Actions, list[dict[str, Any]]]
CASES: dict[str, Case] = {
    "double click": (
        "<button>Go</button>",
        lambda page: page.get_by_role("button").dblclick(),
        [{"do": "click", "times": 2}],
    ),
    "right click": (
        "<button>Go</button>",
        lambda page: page.get_by_role("button").click(button="right"),
        [{"do": "click", "button": "right"}],
    ),
    "keys": (
        "<button>Go</button>",
        lambda page: page.get_by_role("button").press("Escape"),
        [{"do": "press", "key": "Escape"}],
    ),
    "combination": (
        "<p>x",
        lambda page: page.keyboard.press("Control+k"),
        [{"do": "press", "key": "Control+k"}],
    ),
    "wheel": (
        "<div style='height:9000px'>x</div>",
        lambda page: page.mouse.wheel(0, 300),
        [{"do": "scroll"}],
    ),
    "upload": (
        "<label>File <input type=file></label>",
        lambda page: page.get_by_label("File").set_input_files(
            {"name": "a.txt", "mimeType": "text/plain", "buffer": b"x"}
        ),
        [{"do": "upload", "files": ["a.txt"]}],
    ),
    "nothing": ("<p>x</p>", lambda page: page.mouse.click(300, 300), []),
    "a drawn box": (
        "<label><input type=checkbox> Agree</label>",
        lambda page: page.get_by_text("Agree").click(),
        [{"do": "check"}],
    ),
    "drag": (
        "<div draggable=true id=from>From</div><div id=to ondragover='event.preventDefault()'>To</div>",
        lambda page: page.locator("#from").drag_to(page.locator("#to")),
        [{"do": "drag"}],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_action_is_one_step(harness: BrowserHarness, name: str) -> None:
    """An action becomes the one operation that repeats it, and a click on nothing becomes none."""
    body, actions, expected = CASES[name]
    with serving(lambda _: text(f"<!doctype html><title>T</title>{body}", "text/html")) as web:
        recording = harness.run(record(harness, f"{web.url}/", actions))
    steps: list[Any] = [write_operation(step) for step in recording.steps[1:]]
    assert [
        {
            key: one
            for key, one in step.items()
            if key not in ("target", "onto", "expect", "facts", "ontoFacts")
        }
        for step in steps
    ] == expected
    assert [line.partition(" ")[0] for line in recording.left_out] == (
        ["upload"] if name == "upload" else []
    )


def test_an_alternative_matches_exactly_its_element(harness: BrowserHarness) -> None:
    """Equal names get their position, generated class names and ids are left out, and each
    alternative finds the element that was clicked and no other.
    """
    rows = "".join(
        f"<li class='css-1x{number}'><span>Row {number}</span><button id=b{number} class='btn add'>Add</button>"
        for number in range(4)
    )
    body = f"<ul>{rows}</ul><script>addEventListener('click', event => document.title = event.target.id)</script>"

    async def check() -> None:
        async with harness.context() as context:
            with serving(lambda _: text(body, "text/html")) as web:
                page = await context.context.new_page()
                recorder = Recorder(context)
                await recorder.start()
                await page.goto(f"{web.url}/")
                await page.get_by_role("button").nth(2).click()
                recording = await recorder.stop()
                target: Any = write_operation(recording.steps[1])["target"]
                assert target[0] == {"role": "button", "name": "Add", "nth": 2}
                assert len(target) >= 3
                assert "css-" not in str(target) and "b2" not in str(target)
                for alternative in recording.steps[1].target:  # type: ignore[attr-defined]
                    await page.evaluate("document.title = ''")
                    from uncaged_browser.operations import Click

                    await context.perform(Click(target=(alternative,)))
                    assert await page.title() == "b2", alternative

    harness.run(check())


def test_a_page_cannot_forge_notes(harness: BrowserHarness) -> None:
    """Events that a script makes are no actions, and the function that notes them is out of its
    reach.
    """
    body = """<button onclick="document.title = 'clicked'">Go</button><script>
      const seen = Object.keys(window).filter(key => typeof window[key] === 'function' && key.startsWith('note')
        && !key.includes(' '));
      document.title = seen.join() || 'none';
      setTimeout(() => document.querySelector('button').click(), 0);</script>"""

    async def look(page: Page) -> None:
        await page.wait_for_function("document.title === 'clicked' || document.title === 'none'")
        await asyncio.sleep(0)

    assert noted(harness, body, look) == []
