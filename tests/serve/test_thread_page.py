"""The page of one thread in Chromium, and its picture without a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright
from testbed.serving import environment, running
from testbed.thread_pages import (
    HOSTILE,
    add_steps,
    asking_store,
    hostile_journal,
    long_journal,
    put_journal,
    waiting_thread,
)
from uncaged_browser.browsers.installed import find_browser
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import token_of

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

STEPS = 5000
TIMEOUT_MS = 120_000
TASK_MS = 50


def longest_task_ms(trace: bytes) -> float:
    """Return the most time of the processor that one task of a page's main thread took, in
    milliseconds: on a busy machine the time on the clock tells nothing.
    """
    events = json.loads(trace)["traceEvents"]
    main = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        event["tdur"] / 1000
        for event in events
        if event["name"].endswith("RunTask")
        and (event["pid"], event["tid"]) in main
        and "tdur" in event
    ]
    assert len(tasks) > 100
    return float(max(tasks))


@dataclass(slots=True, kw_only=True)
class ServedPage:
    """A server with its pages. problems: what the browser reported: errors of scripts, refusals of
    the content security policy, dialogs that a script opened.
    """

    engine: Engine
    browser: Browser
    address: str
    problems: list[str] = field(default_factory=list)

    def open(self, where: str, width: int = 1280, blocked: str = "") -> Page:
        """Return a page of its own, at an address of this server or of a file. blocked: a pattern
        of addresses that it cannot reach.
        """
        page = self.browser.new_context(viewport={"width": width, "height": 800}).new_page()
        page.set_default_timeout(TIMEOUT_MS)
        if blocked:
            page.route(blocked, lambda route: route.abort())
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        page.on(
            "console",
            lambda message: self.problems.append(message.text) if message.type == "error" else None,
        )
        if where.startswith("#"):
            page.goto(f"{self.address}#token={token_of(self.engine.store)}")
            page.wait_for_selector("main h1")
            page.evaluate("where => { location.hash = where }", where)
        else:
            page.goto(where)
        return page


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    expect.set_options(timeout=TIMEOUT_MS)
    words = ["-m", "uncaged_cli", "serve", "--port", "0", "--json"]
    with (
        asking_store(tmp_path_factory.mktemp("page") / "store") as engine,
        running(words, engine) as server,
        sync_playwright() as playwright,
    ):
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        program = find_browser(None, os.environ)
        browser = playwright.chromium.launch(executable_path=str(program), args=["--no-sandbox"])
        try:
            yield ServedPage(engine=engine, browser=browser, address=address)
        finally:
            browser.close()


def test_a_thread_of_many_steps_has_no_long_task(served: ServedPage) -> None:
    """Opened, scrolled to its end and back, read by keyboard and followed: only rows in view are
    elements, and no task takes more than 50 ms of the main thread.
    """
    script = long_journal(served.engine, STEPS)
    page = served.open("#/threads")
    served.browser.start_tracing(page=page, categories=["toplevel"])
    page.evaluate("where => { location.hash = where }", f"#/threads/{script.thread}")
    timeline = page.get_by_role("listbox", name="Timeline")
    expect(timeline.get_by_role("option").first).to_have_attribute("aria-setsize", str(STEPS))
    for place in (0.5, 0.1, 0.9, 0):
        timeline.evaluate("(one, part) => { one.scrollTop = one.scrollHeight * part }", place)
        expect(page.locator(f"#row-{round(place * STEPS)}")).to_be_attached()
    timeline.press("Home")
    timeline.press("ArrowDown")
    timeline.press("Enter")
    expect(page.get_by_role("heading", name="2 http GET https://example.org/2")).to_be_focused()
    assert page.url.endswith(f"#/threads/{script.thread}/steps/2")
    page.keyboard.press("Escape")
    expect(timeline).to_be_focused()
    timeline.press("End")
    expect(page.locator(f"#row-{STEPS - 1}")).to_be_visible()
    add_steps(script, range(STEPS + 1, STEPS + 101))
    put_journal(served.engine, 2, script)
    expect(page.locator(f"#row-{STEPS + 99}")).to_be_visible()
    assert timeline.get_by_role("option").count() < 80
    assert longest_task_ms(served.browser.stop_tracing()) < TASK_MS
    assert served.problems == []
    page.context.close()


def test_a_question_is_answered_in_the_form_and_followed(served: ServedPage) -> None:
    """The form has the fields of the schema and says what is wrong; the answer goes on with the
    thread, whose rows come by themselves; a page that missed it shows the answer that counts. An
    answer of the server that comes late does not bring a former status back.
    """
    thread = waiting_thread(served.engine)
    page = served.open(f"#/threads/{thread}")
    late = served.open(f"#/threads/{thread}", blocked="**/events*")
    for one in (page, late):
        expect(one.get_by_role("form", name="Question")).to_contain_text("how many?")
    page.get_by_role("button", name="Answer").click()
    expect(page.locator("#status")).to_contain_text("count: write a number")
    page.get_by_label("count").fill("3")
    held: list[Route] = []
    page.route(
        f"**/api/threads/{thread}",
        lambda route: route.continue_() if held else held.append(route),
    )
    page.get_by_role("button", name="Answer").click()
    expect(page.locator("h1 .badge")).to_have_text("completed")
    former = {**held[0].fetch().json(), "status": "running"}
    with page.expect_response(f"**/api/threads/{thread}"):
        held[0].fulfill(json=former)
    page.evaluate("fetch('/').then((one) => one.text())")
    assert page.locator("h1 .badge").text_content() == "completed"
    expect(page.locator(".step-row")).to_have_count(7)
    expect(page.locator(".ending")).to_contain_text("hello 3")
    expect(page.locator(".step-open")).to_have_count(0)
    late.get_by_label("count").fill("4")
    late.get_by_role("button", name="Answer").click()
    expect(late.locator("#status")).to_contain_text('the answer that counts: {"count":3}')
    expect(late.get_by_role("form", name="Question")).to_have_count(0)
    served.problems.clear()  # the refused answer, and the events that were blocked
    page.context.close()
    late.context.close()


def test_a_thread_is_paused_resumed_forked_and_compared(served: ServedPage) -> None:
    """Each button of the page acts, also on a phone, and shows the state that follows."""
    thread = waiting_thread(served.engine, "first")
    page = served.open(f"#/threads/{thread}", width=390)
    badge = page.locator("h1 .badge")
    page.get_by_role("button", name="Pause").click()
    expect(badge).to_have_text("paused")
    page.get_by_role("button", name="Resume …").click()
    page.get_by_label("maxSteps").fill("50")
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(badge).to_have_text("waiting")
    page.get_by_role("button", name="Verify").click()
    expect(page.locator("#status")).to_contain_text("proved")
    page.locator(".step-row").first.click()
    page.get_by_role("tab", name="Journal").click()
    expect(page.locator(".drawer")).to_contain_text("follows the chain")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Fork from here …").click()
    page.get_by_role("button", name="Fork", exact=True).click()
    expect(page.locator(".relatives")).to_contain_text(thread[-6:])
    page.get_by_role("button", name="Compare …").click()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".sides-summary")).to_contain_text("1 step is alike")
    assert served.problems == []
    page.context.close()


def test_hostile_texts_are_texts(served: ServedPage, tmp_path: Path) -> None:
    """Markup in every field of a journal runs nothing, here and in the page as a file, which loads
    nothing; marks that reorder text are visible.
    """
    thread = hostile_journal(served.engine)
    file = tmp_path / "thread.html"
    words = [sys.executable, "-m", "uncaged_cli", "thread", "show", thread, "--html", str(file)]
    done = subprocess.run(words, env=environment(served.engine), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    live = served.open(f"#/threads/{thread}")
    still = served.open(file.as_uri())
    loaded: list[str] = []
    still.on("request", lambda request: loaded.append(request.url))
    for page in (live, still):
        rows = page.locator(".step-row")
        expect(rows).to_have_count(3)
        for number in range(3):
            rows.nth(number).click()
            expect(page.locator(".drawer h2")).to_contain_text(f"{number + 1} ")
            for tab in page.get_by_role("tab").all():
                tab.click()
                assert page.locator("main script, main img").count() == 0
        page.get_by_role("tab", name="Error").click()
        expect(page.locator(".drawer .error")).to_contain_text(HOSTILE.replace("\u202e", "\\u202e"))
        page.keyboard.press("Escape")
        expect(page.locator(".drawer")).to_be_hidden()
    assert loaded == []
    assert served.problems == []
    live.context.close()
    still.context.close()


def test_a_thread_that_is_removed_while_followed_says_so(served: ServedPage) -> None:
    """The page keeps what it shows, and says that the thread is gone."""
    thread = waiting_thread(served.engine, "gone")
    page = served.open(f"#/threads/{thread}")
    expect(page.locator(".step-row")).to_have_count(2)
    served.engine.remove_thread(thread)
    expect(page.locator(".thread-page > .error")).not_to_be_empty()
    expect(page.locator(".step-row")).to_have_count(2)
    page.context.close()
