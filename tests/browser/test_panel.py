"""Side panel of the extension."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect
from testbed.browsers import PAIRING_PAGE, PANEL_PAGE, ControlledBrowser
from testbed.webserver import Reply, raw, serving, text
from uncaged_browser.relay.listener import EXTENSION_ID
from uncaged_browser.relay.panel import serve_page
from uncaged_serve.page.route import POLICY, SIDE_PANEL

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

HTML = "text/html; charset=utf-8"
WAIT_MS = 30_000
PAGE = text("<!doctype html><h1>Conversations</h1>", HTML, Content_Security_Policy=POLICY)
"""A page with the policy of the real one, which names who may show it in a frame."""


def test_the_panel_shows_the_page_of_serve(paired: ControlledBrowser) -> None:
    """The panel says that nothing is served, that a server has no page, or shows the page; it
    follows what starts and ends, and leads to the settings.
    """

    async def panel(shown: str, port: int) -> None:
        paired.serve_port = port
        [page] = [page for page in paired.context.pages if page.url == PANEL_PAGE]
        status = page.get_by_role("status")
        if shown == "page":
            inner = page.frame_locator("iframe").get_by_role("heading", name="Conversations")
            await expect(inner).to_be_visible(timeout=WAIT_MS)
            await expect(status).to_be_hidden()
        else:
            await expect(status).to_contain_text(shown, timeout=WAIT_MS)
            await expect(page.locator("iframe")).to_be_hidden()

    async def open_panel() -> None:
        await (await paired.context.new_page()).goto(PANEL_PAGE)

    async def open_settings() -> None:
        [page] = [page for page in paired.context.pages if page.url == PANEL_PAGE]
        async with paired.context.expect_page() as opened:
            await page.get_by_role("button", name="Settings").click()
        await (await opened.value).wait_for_url(PAIRING_PAGE)

    paired.run(open_panel())
    paired.run(panel("does not run at http://127.0.0.1:9/", 9))
    with (
        serving(lambda _: text("the token is missing", status=401)) as bare,
        serving(lambda _: PAGE) as serve,
    ):
        paired.run(panel("has no page that can be shown here", bare.port))
        paired.run(panel("page", serve.port))
    paired.run(panel("does not run", serve.port))
    paired.run(open_settings())


def test_only_the_extension_shows_the_page_in_a_frame() -> None:
    assert f"chrome-extension://{EXTENSION_ID}" == SIDE_PANEL
    assert POLICY.endswith(f"frame-ancestors {SIDE_PANEL}")


def test_the_button_opens_the_panel(paired: ControlledBrowser) -> None:
    """The extension's button has no menu of its own: it opens the panel."""
    [worker] = [
        one for one in paired.context.service_workers if one.url.endswith("/service_worker.js")
    ]
    behaviour = paired.run(worker.evaluate("chrome.sidePanel.getPanelBehavior()"))
    assert behaviour == {"openPanelOnActionClick": True}
    assert paired.run(worker.evaluate("chrome.action.getPopup({})")) == ""


@pytest.mark.parametrize(
    ("reply", "has_page"),
    [
        (text("<h1>Conversations</h1>", HTML), True),
        (text("<h1>Sign in</h1>", HTML, status=401), False),
        (text("{}", "application/json"), False),
        (raw(b"SSH-2.0-OpenSSH\r\n"), False),
    ],
    ids=["page", "no access", "data", "another protocol"],
)
def test_only_a_page_is_shown(reply: Reply, *, has_page: bool) -> None:
    """The panel gets the address of a server that replies with a page, and a text for others."""

    async def content_of(port: int) -> dict[str, object]:
        return await serve_page(lambda: port)()

    with serving(lambda _: reply) as server:
        content = asyncio.run(content_of(server.port))
    if has_page:
        assert content == {"address": f"{server.url}/#/ask"}
    else:
        assert "has no page" in str(content["text"])
