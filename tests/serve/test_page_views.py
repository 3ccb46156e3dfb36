"""Flows, proposals, conversations and the machine on the page, in Chromium."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect, sync_playwright
from testbed.processes import end_workers
from testbed.serving import running
from uncaged_browser.browsers.installed import find_browser
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import token_of
from uncaged_engine.services.proposals import Proposals
from uncaged_engine.services.registry import KNOWN

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

PATIENCE_MS = 90_000
HOSTILE = "<img src=x onerror=alert(1)>\u202e"
SOURCE = """
descriptor = {
    "contract": 1, "name": "count", "description": "Count up to a number, DESCRIBED", "kind": "task",
    "policy": {POLICY}, "patterns": ["count slowly"],
    "parameters": {"type": "object", "properties": {"limit": {"type": "integer", "default": 2, "minimum": 0}}},
    "roles": {"counter": {"description": "Counts.", "systemPrompt": "s", "extractPrompt": "e", "schema": {"type": "object"}}},
    "graph": {"__start__": "counter", "counter": "__end__"},
}


def run(input, options):
    answer = yield {"ask": {"question": "how far?", "schema": {"type": "integer", "minimum": 1}}}
    return {"success": True, "message": f"counted to {answer}"}
""".replace("DESCRIBED", HOSTILE.replace("\u202e", "\\u202e"))
FIRST = SOURCE.replace("POLICY", '"ask": {}')
WIDER = SOURCE.replace("POLICY", '"ask": {}, "sleep": {}')
PROPOSED = SOURCE.replace("POLICY", '"ask": {}, "sleep": {}, "now": {}')


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store with the flow `count` in two versions, and a third one proposed."""
    root = tmp_path_factory.mktemp("counting") / "store"
    engine = Engine(Store.open(root))
    for source in (FIRST, WIDER):
        engine.add("count", source.encode(), accept=lambda _: True)
    entry = engine.registry.entry("count")
    Proposals(engine.store).propose(
        entry.name,
        before=entry.hash,
        after=read_bundle(PROPOSED.encode(), KNOWN),
        by="fix-flow",
        evidence={"replayed": 3, "note": HOSTILE},
        threads=(),
        now_ms=1,
    )
    yield engine
    end_workers(root)


@pytest.fixture(scope="module")
def problems() -> list[str]:
    """What the browser reports: errors of scripts, refusals of the policy, dialogs."""
    return []


@pytest.fixture(scope="module")
def page(counting: Engine, problems: list[str]) -> Iterator[Page]:
    with (
        running(["-m", "uncaged_cli", "serve", "--port", "0", "--json"], counting) as server,
        sync_playwright() as playwright,
    ):
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        path = find_browser(None, os.environ)
        browser = playwright.chromium.launch(executable_path=str(path), args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on(
            "console",
            lambda message: problems.append(message.text) if message.type == "error" else None,
        )
        page.goto(f"{address}#token={token_of(counting.store)}")
        yield page
        browser.close()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are put: docs/pictures, if they are to be made anew."""
    chosen = os.environ.get("UNCAGED_PICTURES")
    return Path(chosen) if chosen else tmp_path_factory.mktemp("pictures")


def view(page: Page, hash: str, heading: str) -> None:
    page.evaluate("hash => { location.hash = hash }", hash)
    expect(page.get_by_role("heading", level=1)).to_contain_text(heading)


@pytest.fixture(scope="module")
def conversed(page: Page) -> None:
    """A sentence was written, completed, explained and run, and its question answered."""
    view(page, "#/ask", "Ask")
    field = page.get_by_label("Sentence")
    field.press_sequentially("count")
    option = page.get_by_role("option", name="slowly")
    expect(option).to_be_visible()
    field.press("Tab")
    expect(field).to_have_value("count slowly")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_text("It would run this")).to_be_visible()
    page.get_by_role("button", name="Send").click()
    question = page.get_by_role("form", name="Question")
    expect(question).to_contain_text("how far?")
    question.get_by_label("Answer").fill("7")
    question.get_by_role("button", name="Answer").click()
    expect(page.locator(".result")).to_contain_text("counted to 7")


def test_the_token_does_not_stay_in_the_address(page: Page, counting: Engine) -> None:
    expect(page.get_by_role("heading", name="Threads")).to_be_visible()
    assert token_of(counting.store) not in page.url
    assert page.evaluate("document.referrer") == ""


def test_the_skip_link_leads_to_the_view_that_is_shown(page: Page) -> None:
    """It is no view of its own."""
    view(page, "#/flows", "Flows")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    expect(page.get_by_role("heading", level=1)).to_have_text("Flows")


def test_a_view_that_is_left_while_it_loads_fills_no_other(page: Page) -> None:
    """Its answer comes when another view is shown."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    view(page, "#/machine", "Machine")
    page.route("**/api/proposals", hold)
    with page.expect_request("**/api/proposals"):
        page.evaluate("location.hash = '#/flows'")
    view(page, "#/machine", "Machine")
    for one in held:
        one.continue_()
    page.unroute("**/api/proposals")
    with page.expect_response("**/api/machine"):
        pass
    expect(page.get_by_role("heading", level=1)).to_have_text("Machine")


def test_a_refused_action_says_so_in_its_dialog(page: Page, counting: Engine) -> None:
    """On the page, if the dialog was closed meanwhile."""
    thread = counting.run("count", prompt="")
    assert [one for one in counting.follow(thread) if one.kind == "status"]
    page.evaluate("id => { location.hash = `#/threads/${id}` }", thread)
    page.get_by_role("button", name="Fork …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("on (optional)").fill("no-such-flow")
    dialog.get_by_role("button", name="Fork").click()
    expect(dialog.get_by_role("alert")).to_contain_text("no-such-flow")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/fork", hold)
    with page.expect_request("**/fork"):
        dialog.get_by_role("button", name="Fork").click()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    for one in held:
        one.continue_()
    expect(page.locator("#status")).to_contain_text("no-such-flow")
    page.unroute("**/fork")
    counting.kill(thread)
    page.evaluate("location.hash = '#/flows'")


def test_a_wrong_token_asks_for_the_right_one_once(page: Page, counting: Engine) -> None:
    """A view that polls does not ask again, and the page begins anew with the token."""
    context = page.context.browser.new_context()  # type: ignore[union-attr]
    apart = context.new_page()
    apart.set_default_timeout(PATIENCE_MS)
    apart.goto(page.url.partition("#")[0] + f"#token={token_of(counting.store)}")
    apart.evaluate("location.hash = '#/machine'")
    expect(apart.get_by_role("heading", level=1)).to_have_text("Machine")
    apart.evaluate("sessionStorage.setItem('uncaged-token', 'x'.repeat(43))")
    field = apart.get_by_label("Token")
    field.fill("typed")
    with apart.expect_response("**/api/machine"):
        pass
    expect(field).to_have_value("typed")
    field.fill(token_of(counting.store))
    apart.get_by_role("button", name="Continue").click()
    expect(apart.get_by_role("heading", level=1)).to_have_text("Machine")
    context.close()


def test_another_tab_gets_the_token_from_the_open_one(page: Page) -> None:
    """Without it a tab asks for the token."""
    other = page.context.new_page()
    other.set_default_timeout(PATIENCE_MS)
    other.goto(page.url.partition("#")[0] + "#/flows")
    expect(other.get_by_role("link", name="count", exact=True)).to_be_visible()
    other.close()
    lonely = page.context.browser
    assert lonely is not None
    apart = lonely.new_context().new_page()
    apart.set_default_timeout(PATIENCE_MS)
    apart.goto(page.url)
    expect(apart.get_by_label("Token")).to_be_visible()
    apart.context.close()


def test_a_flow_is_rolled_back_after_its_permissions_were_compared(
    page: Page, counting: Engine
) -> None:
    """The difference names the permission; the dialog says what goes."""
    before = counting.registry.entry("count")
    view(page, "#/flows/count", "count")
    expect(page.get_by_text(HOSTILE.partition("\u202e")[0])).to_be_visible()
    expect(page.locator("svg.graph")).to_contain_text("counter")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("details .patch-added").first).to_contain_text("sleep")
    page.get_by_role("button", name="Roll back to it").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("No longer:")
    dialog.get_by_role("button", name="Roll back").click()
    expect(page.locator("h1")).to_contain_text(before.history[0].hash)
    assert counting.registry.entry("count").hash == before.history[0].hash
    counting.registry.rollback("count", before.hash)


def test_a_proposal_is_accepted_with_its_permissions_read(page: Page, counting: Engine) -> None:
    view(page, "#/flows", "Flows")
    page.get_by_role("link", name="count:").click()
    expect(page.get_by_text("It asks to be allowed more")).to_be_visible()
    expect(page.get_by_text("replayed")).to_be_visible()
    page.get_by_role("button", name="Accept").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It may then:")
    dialog.get_by_role("button", name="Accept").click()
    expect(page).to_have_url(page.url.partition("#")[0] + "#/flows/count")
    expected = read_bundle(PROPOSED.encode(), KNOWN).hash
    assert counting.registry.entry("count").hash == expected


@pytest.mark.usefixtures("conversed")
def test_a_sentence_is_completed_explained_run_and_its_question_answered(page: Page) -> None:
    """The steps are the fixture's; the conversation is there when the view is opened again."""
    view(page, "#/machine", "Machine")
    view(page, "#/ask", "Ask")
    expect(page.locator(".result")).to_contain_text("counted to 7")


@pytest.mark.usefixtures("conversed")
def test_a_record_that_comes_before_those_of_the_log_is_shown(page: Page) -> None:
    """The server sends a record that was written while it read the log: before its answer."""

    def earlier(client: WebSocketRoute) -> None:
        asked: set[object] = set()
        server = client.connect_to_server()

        def to_server(message: str | bytes) -> None:
            call = json.loads(message)
            if call["method"] == "log":
                asked.add(call["id"])
            server.send(message)

        def to_client(message: str | bytes) -> None:
            answer = json.loads(message)
            if answer.get("id") in asked:
                last = answer["result"]["records"].pop()
                params = {"conversation": answer["result"]["conversation"], "record": last}
                client.send(json.dumps({"jsonrpc": "2.0", "method": "record", "params": params}))
            client.send(json.dumps(answer))

        client.on_message(to_server)
        server.on_message(to_client)

    view(page, "#/machine", "Machine")
    page.route_web_socket("**/dispatcher", earlier)
    view(page, "#/ask", "Ask")
    expect(page.locator(".result")).to_contain_text("counted to 7")
    page.route_web_socket("**/dispatcher", WebSocketRoute.connect_to_server)


def test_a_thread_is_started_from_the_form(page: Page, counting: Engine) -> None:
    """A parameter that is wrong is marked, and nothing starts."""
    view(page, "#/flows/count", "count")
    before = len(counting.threads())
    page.get_by_label("limit (optional)").fill("-1")
    page.get_by_label("Agent (optional)").fill("person")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("form input:invalid")).to_have_count(1)
    page.get_by_label("limit (optional)").fill("3")
    assert len(counting.threads()) == before
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("form", name="Question")).to_contain_text("how far?")
    [started] = [one for one in counting.threads() if one.thread_id in page.url]
    assert counting.thread(started.thread_id).start["parameters"]["params"] == {"limit": 3}
    page.get_by_role("button", name="Kill …").click()
    page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    expect(page.locator("h1 .badge")).to_have_text("killed")
    expect(page.get_by_role("group", name="Actions").locator(":focus")).to_have_count(1)


def test_the_machine_shows_its_checks(page: Page, counting: Engine) -> None:
    view(page, "#/machine", "Machine")
    expect(page.get_by_text(str(counting.store.root))).to_be_visible()
    expect(page.locator(".checks")).to_contain_text("registry")


@pytest.mark.usefixtures("conversed")
def test_pictures_of_the_views(page: Page, pictures: Path) -> None:
    """docs/serve.md has them; `UNCAGED_PICTURES=docs/pictures` makes them anew."""
    for name, where, shown in (
        ("threads", "#/threads", "td.c-flow a"),
        ("flow", "#/flows/count", "svg.graph"),
        ("ask", "#/ask", ".result"),
    ):
        page.evaluate("hash => { location.hash = hash }", where)
        page.wait_for_selector(shown)
        page.screenshot(path=pictures / f"{name}.png")
    page.evaluate("location.hash = '#/threads'")
    page.locator("td.c-flow a").first.click()
    page.locator(".step-row").first.click()
    page.wait_for_selector(".drawer [role=tab]")
    page.screenshot(path=pictures / "thread.png")
    page.set_viewport_size({"width": 390, "height": 800})
    page.screenshot(path=pictures / "thread-phone.png")
    page.set_viewport_size({"width": 1280, "height": 900})
    assert all((pictures / f"{name}.png").stat().st_size > 5_000 for name in ("threads", "thread"))


@pytest.mark.usefixtures("conversed")
@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("#/threads", "td.c-flow a"),
        ("#/flows", "table.flows a"),
        ("#/flows/count", "svg.graph"),
        ("#/ask", ".result"),
        ("#/machine", ".checks li"),
    ],
)
def test_a_phone_shows_each_view_without_scrolling_sideways(
    page: Page, where: str, shown: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.evaluate("hash => { location.hash = hash }", where)
    page.wait_for_selector(shown)
    over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    page.set_viewport_size({"width": 1280, "height": 900})
    assert over <= 0


def test_the_browser_reported_no_problem(page: Page, problems: list[str]) -> None:
    """No script failed, the policy refused nothing, and no text of a flow ran."""
    assert page.url
    refused = "404 (Not Found)"  # the fork on a flow that is not there
    assert [one for one in problems if refused not in one] == []
