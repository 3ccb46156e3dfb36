"""The extension in a real browser: whose tabs it uses, and what is lost when a part is killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from testbed.browsers import PAIRING_PAGE, ControlledBrowser, pair, relaunched, running_browser
from testbed.extensions import arrive
from testbed.webserver import WebServer, serving, text
from uncaged_browser.operations import read_operation
from uncaged_browser.problems import BrowserProblem
from uncaged_browser.relay.control import ExtensionControl
from uncaged_browser.relay.listener import ExtensionListener
from uncaged_browser.relay.pairing import Pairings
from uncaged_browser.scope import BrowserScope
from websockets.asyncio.server import ServerConnection, serve

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

RECONNECT_S = 60.0


@pytest.fixture(scope="module")
def site() -> Iterator[WebServer]:
    def answer(request: Any) -> Any:
        name = request.path.strip("/").capitalize()
        return text(f"<!doctype html><title>{name}</title><h1>{name}</h1>", "text/html")

    with serving(answer) as server:
        yield server


@pytest.fixture
def browser(paired: ControlledBrowser) -> ControlledBrowser:
    """The browser with one empty tab, which no control uses yet."""
    paired.run(paired.control.aclose())
    paired.close_tabs()
    return paired


def listener_of(browser: ControlledBrowser) -> ExtensionListener:
    assert browser.listener is not None
    return browser.listener


def person_opens(browser: ControlledBrowser, url: str) -> None:
    async def open_page() -> None:
        page = await browser.context.new_page()
        await page.goto(url)

    browser.run(open_page())


def reconnected(browser: ControlledBrowser) -> None:
    """Wait until the extension is connected again."""
    assert browser.run(listener_of(browser).wait_link(RECONNECT_S)) is not None


def waiting(browser: ControlledBrowser) -> Any:
    """Start an operation that waits for an element that never comes."""
    body = {"do": "wait", "for": "element", "target": {"css": "#never"}, "timeout_s": 180}
    return browser.control.perform(read_operation(body))


def failure(browser: ControlledBrowser, cut: Any) -> BrowserProblem:
    """Return why an operation fails that is under way when *cut* runs."""

    async def run() -> BrowserProblem:
        operation = asyncio.ensure_future(waiting(browser))
        await asyncio.wait([operation], timeout=1)
        assert not operation.done()
        await cut
        with pytest.raises(BrowserProblem) as caught:
            async with asyncio.timeout(60):
                await operation
        return caught.value

    found: BrowserProblem = browser.run(run())
    return found


def test_the_persons_tabs_are_listed_and_not_touched(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """The tab that the person looks at is used without an id; another one only after a switch; the
    end of the control closes none.
    """
    person_opens(browser, f"{site.url}/letter")
    person_opens(browser, f"{site.url}/bank")
    tabs = {tab["title"]: tab for tab in browser.do("tabs")}
    assert tabs["Bank"]["current"]
    assert browser.do("text")["text"] == "Bank"
    refused = browser.problem("text", tab=tabs["Letter"]["tab"])
    assert refused.kind == "refused"
    assert "switch to it first" in str(refused)
    opened = browser.show(f"{site.url}/ours")
    assert browser.do("text")["text"] == "Ours"
    assert browser.do("switch", words="letter")["tab"] == tabs["Letter"]["tab"]
    assert browser.do("text")["text"] == "Letter"
    browser.run(browser.control.aclose())
    left = [tab["title"] for tab in browser.do("tabs")]
    assert {"Letter", "Bank", "Ours"} <= set(left)
    browser.do("close", tab=opened)


def test_a_persons_tab_outside_the_scope_is_left_alone(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """A scoped control neither sees nor empties a person's tab that is, or goes, elsewhere."""
    person_opens(browser, f"{site.url}/bank")
    other = BrowserScope.of([f"localhost:{site.port}"])
    scoped = ExtensionControl(browser.playwright, listener_of(browser), other)
    try:
        listed = browser.run(scoped.perform(read_operation({"do": "tabs"})))
        assert {tab["url"] for tab in listed} == {"about:blank"}
        with pytest.raises(BrowserProblem, match="another place"):
            browser.run(scoped.perform(read_operation({"do": "text"})))
    finally:
        browser.run(scoped.aclose())
    [page] = [page for page in browser.context.pages if page.url.endswith("/bank")]
    own = ExtensionControl(browser.playwright, listener_of(browser), BrowserScope.of([site.host]))
    try:
        with pytest.raises(BrowserProblem, match="another place") as caught:
            browser.run(own.perform(read_operation({"do": "text"}), scope=other))
        assert "/bank" not in str(caught.value)
        assert own.context is not None and not own.context.tabs.pages, "no debugger is attached"
        browser.run(own.perform(read_operation({"do": "text"})))
        away = f"http://localhost:{site.port}/away"
        browser.run(page.goto(away))
        with pytest.raises(BrowserProblem, match="blocked"):
            browser.run(own.perform(read_operation({"do": "text"})))
        assert page.url == away
    finally:
        browser.run(own.aclose())


def test_a_lost_connection_fails_its_call_and_is_made_again(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """An operation under way fails at once, the next ones until the extension is back; tabs keep
    their ids.
    """
    tab = browser.show(f"{site.url}/first")
    link = listener_of(browser).link
    assert link is not None
    lost = failure(browser, link.aclose())
    assert (lost.kind, str(lost)) == ("closed", "wait: the connection to the extension was lost")
    away = browser.problem("text")
    assert away.kind == "closed"
    assert str(away).startswith("text: no browser is connected")
    reconnected(browser)
    assert browser.do("address")["tab"] == tab
    assert browser.do("text", tab=tab)["text"] == "First"


def test_a_killed_service_worker_comes_back(browser: ControlledBrowser, site: WebServer) -> None:
    """The service worker's end fails the operation under way; started by the next event, it
    connects with its token, and the tabs are attached again.
    """
    tab = browser.show(f"{site.url}/first")

    async def kill() -> None:
        assert browser.context.browser is not None
        session = await browser.context.browser.new_browser_cdp_session()
        targets = (await session.send("Target.getTargets"))["targetInfos"]
        [worker] = [one for one in targets if one["url"].endswith("/service_worker.js")]
        await session.send("Target.closeTarget", {"targetId": worker["targetId"]})

    assert failure(browser, kill()).kind == "closed"
    person_opens(browser, PAIRING_PAGE)
    reconnected(browser)
    assert browser.do("text", tab=tab)["text"] == "First"


def test_an_ended_session_is_found_by_the_extension(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """A listener that is started anew on the port gets the extension back without pairing; which
    tabs were opened is lost, and they are the person's.
    """
    person_opens(browser, f"{site.url}/bank")
    tab = browser.show(f"{site.url}/first")
    person_opens(browser, f"{site.url}/letter")
    before = listener_of(browser)
    browser.run(browser.control.aclose())
    browser.run(before.aclose())
    listener = browser.listener = ExtensionListener(before.pairings)
    browser.run(listener.start(before.port))
    browser.control = ExtensionControl(browser.playwright, listener)
    reconnected(browser)
    assert browser.problem("text", tab=tab).kind == "refused"
    assert browser.do("text")["text"] == "Letter"


def test_a_tab_that_the_debugger_leaves_is_closed_for_us(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """A person who closes the tab during an operation fails that operation only."""
    browser.show(f"{site.url}/first")
    kept = browser.show(f"{site.url}/second")
    gone = browser.show(f"{site.url}/third")
    [page] = [page for page in browser.context.pages if page.url.endswith("/third")]
    assert failure(browser, page.close()).kind == "closed"
    assert browser.problem("text", tab=gone).kind == "closed"
    assert browser.do("text", tab=kept)["text"] == "Second"


def test_another_program_on_the_port_gets_no_control(browser: ControlledBrowser) -> None:
    """A server that cannot prove that it knows the token is not obeyed; the extension tells the
    person so at pairing.
    """
    received: list[dict[str, Any]] = []

    async def rogue(connection: ServerConnection) -> None:
        welcome = {"product": "uncaged-workflow", "protocol": 1, "nonce": "n"}
        await connection.send(json.dumps({"welcome": welcome}))
        received.append(json.loads(await connection.recv()))
        await connection.send(json.dumps({"accepted": {"proof": "0" * 64, "token": "t"}}))
        call = {"channel": "browserControl", "id": 1, "method": "tabs.query", "params": [{}]}
        await connection.send(json.dumps(call))
        async for message in connection:
            received.append(json.loads(message))

    async def run() -> str:
        async with serve(rogue, "127.0.0.1", 0) as server:
            [socket] = server.sockets
            return await pair(browser.context, "ABCD", socket.getsockname()[1])

    assert "another program listens on the port" in browser.run(run())
    assert [list(message) for message in received] == [["hello"]]
    status = browser.run(
        pair(browser.context, listener_of(browser).pairings.new_code(), listener_of(browser).port)
    )
    assert status == "Connected."


def test_a_silent_extension_fails_each_call_in_time(
    browser: ControlledBrowser, tmp_path: Path
) -> None:
    """An extension that is connected and never answers keeps no operation beyond its limit, and
    none of the control's end.
    """

    async def run() -> str:
        listener = ExtensionListener(Pairings(tmp_path / "pairings.json"))
        await listener.start(0)
        code = listener.pairings.new_code().replace("-", "")
        connection, _ = await arrive(listener.port, code, kind="code")
        control = ExtensionControl(browser.playwright, listener)
        try:
            with pytest.raises(BrowserProblem) as caught:
                async with asyncio.timeout(60):
                    await control.perform(read_operation({"do": "text", "timeout_s": 0.1}))
            return f"{caught.value.kind}: {caught.value}"
        finally:
            async with asyncio.timeout(60):
                await control.aclose()
            await connection.close()
            await listener.aclose()

    assert browser.run(run()).startswith("timeout: text: the browser did not answer within 0.1 s")


@pytest.mark.parametrize("lie", [None, 7, [7], [{}], [{"id": "x"}], [{"id": 1, "url": 7}]])
def test_a_reply_of_another_shape_fails_its_call(
    browser: ControlledBrowser, tmp_path: Path, lie: object
) -> None:
    """A paired program that is no extension and lists tabs that are none fails the operation."""

    async def answer(connection: Any) -> None:
        replies: list[object] = [[], lie]  # Playwright is connected by then
        async for message in connection:
            call = json.loads(message)
            asked = call["method"] == "tabs.query"
            result = (replies.pop(0) if len(replies) > 1 else replies[0]) if asked else None
            reply = {"channel": "browserControl", "id": call["id"], "result": result}
            await connection.send(json.dumps(reply))

    async def run() -> str:
        listener = ExtensionListener(Pairings(tmp_path / "pairings.json"))
        await listener.start(0)
        code = listener.pairings.new_code().replace("-", "")
        connection, _ = await arrive(listener.port, code, kind="code")
        answering = asyncio.ensure_future(answer(connection))
        control = ExtensionControl(browser.playwright, listener)
        try:
            with pytest.raises(BrowserProblem) as caught:
                await control.perform(read_operation({"do": "tabs"}))
            return f"{caught.value.kind}: {caught.value}"
        finally:
            await control.aclose()
            await connection.close()
            await answering
            await listener.aclose()

    assert browser.run(run()).startswith("refused: the extension's reply is malformed: tab")


def test_a_wrong_code_is_said_to_the_person(browser: ControlledBrowser) -> None:
    """The pairing page reports a refused code, and the pairing before stays."""
    listener = listener_of(browser)
    listener.pairings.new_code()
    assert browser.run(pair(browser.context, "WRONG", listener.port)) == "Not paired: refused."
    reconnected(browser)


def test_a_killed_browser_connects_again_after_its_start() -> None:
    """The browser's end fails the operation under way; started again, its extension connects by
    its token, and the ids of the tabs before are those of none.
    """
    with running_browser("extension") as browser:
        tab = browser.show("about:blank")

        async def kill() -> None:
            for process in browser.processes():
                with suppress(psutil.NoSuchProcess):
                    process.kill()

        assert failure(browser, kill()).kind == "closed"
        assert browser.problem("text").kind == "closed"
        with relaunched(browser):
            reconnected(browser)
            assert browser.problem("text", tab=tab).kind == "closed"
            assert browser.do("open", url="about:blank")["url"] == "about:blank"
