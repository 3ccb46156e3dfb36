"""The person's browser in a browser session: paired, preferred, lost, and switched off."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.browsers import ControlledBrowser, pair, running_browser
from testbed.forked_commands import ForkedCommands
from testbed.processes import end, workers_of
from testbed.recordings import Commands
from testbed.shop import open_shop
from testbed.webserver import WebServer, serving, text
from uncaged_browser.session.address import DEFAULT_SESSION, profile_path
from uncaged_browser.session.client import SessionClient
from uncaged_browser.session.messages import KEPT
from uncaged_bundles.storage.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]


@pytest.fixture
def site() -> Iterator[WebServer]:
    with serving(lambda _: text("<!doctype html><title>Page</title>Text", "text/html")) as server:
        yield server


@pytest.fixture
def person() -> Iterator[ControlledBrowser]:
    """A browser with the extension, which runs apart from any session."""
    with running_browser("extension") as found:
        yield found


@pytest.fixture
def client(store: Store) -> Iterator[SessionClient]:
    """A connection to a session whose port for the extension is free."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (store.root / "config.yaml").write_text(f"browser: {{port: {port}}}\n")
    with SessionClient.open(store, DEFAULT_SESSION) as found:
        yield found
    for session in workers_of(store.root):
        end([child.pid for child in session.children(recursive=True)] + [session.pid])
    shutil.rmtree(profile_path(store, DEFAULT_SESSION).parent, ignore_errors=True)


def test_a_session_prefers_the_persons_browser_while_it_is_connected(
    client: SessionClient, person: ControlledBrowser, site: WebServer, store: Store
) -> None:
    """The port is closed until external is on; the kept context is the person's while the extension
    is connected, and the session's own before, after a lost browser, and after off.
    """
    port = client.status()["external"]["port"]
    assert client.status()["external"]["on"] is False
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()
    own = client.perform(KEPT, {"do": "open", "url": f"{site.url}/own"}, 10)["tab"]
    code = client.external(on=True)["code"]
    assert client.perform(KEPT, {"do": "address"}, 10)["tab"] == own
    assert person.run(pair(person.context, code, port)) == "Connected."
    assert client.status()["external"]["connected"]
    client.perform(KEPT, {"do": "open", "url": f"{site.url}/theirs"}, 10)
    assert f"{site.url}/theirs" in person.run(addresses(person))
    assert client.perform(KEPT, {"do": "address"}, 10)["url"] == f"{site.url}/theirs"
    assert list(json.loads((store.root / "browser-pairings.json").read_bytes()))
    client.external(on=False)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()
    assert client.perform(KEPT, {"do": "address"}, 10)["tab"] == own
    client.external(on=True)
    wait_connected(client)
    assert client.perform(KEPT, {"do": "tabs"}, 10)[-1]["url"] == f"{site.url}/theirs"
    assert end([process.pid for process in person.processes()]) == []
    wait_connected(client, False)
    assert client.perform(KEPT, {"do": "address"}, 10)["tab"] == own


def test_a_task_in_the_persons_browser_is_recorded(
    client: SessionClient,
    person: ControlledBrowser,
    store: Store,
    tmp_path: Path,
    forked: ForkedCommands,
) -> None:
    """What a person does in a browser that was started apart becomes a flow, proved in a browser of
    ours; without --external the person's browser is not recorded.
    """
    with open_shop(1) as shop:
        commands = Commands(store, tmp_path, os.environ, forked)
        words = ("record", "order", "--url", shop.web.url, "--accept")
        off = commands.run(*words, "--external")
        assert off.code == 1 and "browser external on" in off.err
        port = client.status()["external"]["port"]
        assert person.run(pair(person.context, client.external(on=True)["code"], port))
        refused = commands.run(*words, "--headless")
        assert refused.code == 1 and "--external" in refused.err

        async def search() -> None:
            while not any(page.url.startswith(shop.web.url) for page in person.context.pages):
                await addresses(person)  # its own connection learns of the tab meanwhile
            [page] = [page for page in person.context.pages if page.url.startswith(shop.web.url)]
            await page.get_by_label("Search").press_sequentially("blue lamp")
            await page.get_by_label("Search").press("Enter")
            await page.get_by_role("link", name="Order Blue Lamp").click()
            await page.get_by_label("Mail").fill("ada@shop.test")

        done = commands.record(*words[1:], "--external", act=lambda _: person.run(search()))
        assert done.code == 0, done.err
        lines = done.out.splitlines()
        assert [line.split()[1] for line in lines[:5]] == [
            *("navigate", "fill", "press", "click", "fill"),
        ]
        assert lines[-1].startswith("proved"), done.out


def wait_connected(client: SessionClient, connected: bool = True) -> None:
    """Ask the session until the extension is, or is not, connected; the test's time limit ends
    this.
    """
    while client.status()["external"]["connected"] is not connected:
        pass


async def addresses(browser: ControlledBrowser) -> list[str]:
    """Return where the tabs of a browser are, past the control."""
    assert browser.context.browser is not None
    session = await browser.context.browser.new_browser_cdp_session()
    return [found["url"] for found in (await session.send("Target.getTargets"))["targetInfos"]]
