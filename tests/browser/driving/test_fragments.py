"""HTML in short, from real pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from testbed.browser_harness import BrowserHarness
from testbed.webserver import Reply, Seen, WebServer, serving, text
from uncaged_browser.operations import read_operation

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

INNER = "<p>Inside</p><button>Inner</button>"
PAGE = """<!doctype html><title>Kelp</title><style>p { color: red }</style>
<nav aria-label=Main><a href=/>Home</a></nav>
<main class="x9"><div class=wrapper><h1>Otters &amp; kelp</h1><div><p style="color: red">They <b>sleep</b>
  hand in   hand.</p></div><p hidden>Hidden text</p><p style="display: none">Gone</p>
<pre>one

  two</pre><table><tr><th colspan=2>Food</th></tr><tr><td>urchins</td><td>5 &lt; 6</td></tr></table>
<img src=a.png alt='An "otter"'><img src=b.png><div style="display: contents"><p>Held</p></div></div>
<form action=/order><label for=name>Name</label><input id=name name=name placeholder="Your name" onfocus="x()">
<input type=password name=secret value=hunter2><select name=size><option selected>small<option>large</select>
<div role=button tabindex=0 aria-label=Plus class=icon></div><button disabled>Order</button></form>
<x-card></x-card><iframe src=/inner></iframe><iframe src=/inner hidden></iframe></main>
<footer>Imprint</footer><!-- remark --><script>
customElements.define('x-card', class extends HTMLElement {
  constructor() { super(); this.attachShadow({mode: 'open'}).innerHTML = '<p>Shadow</p><button>Deep</button>'; }
});</script>"""
KNOWLEDGE = """<main><h1>Otters &amp; kelp</h1>
<p>They <b>sleep</b> hand in hand.</p>
<pre>one

  two</pre>
<table><tbody><tr><th colspan="2">Food</th></tr>
<tr><td>urchins</td>
<td>5 &lt; 6</td></tr></tbody></table>
<img alt="An &quot;otter&quot;">
<p>Held</p>
<p>Shadow</p>"""


@pytest.fixture(scope="module")
def page() -> Iterator[WebServer]:
    def answer(request: Seen) -> Reply:
        page = PAGE if request.path == "/" else f"<!doctype html>{INNER}"
        return text(page, "text/html; charset=utf-8")

    with serving(answer) as server:
        yield server


def read(harness: BrowserHarness, page: WebServer, form: str) -> Any:
    """The page in one form."""

    async def run() -> Any:
        async with harness.context() as context:
            await context.perform(read_operation({"do": "navigate", "url": f"{page.url}/"}))
            return await context.perform(read_operation({"do": "html", "as": form}))

    return harness.run(run())


def test_knowledge_is_what_the_page_says(harness: BrowserHarness, page: WebServer) -> None:
    """Contents keep their tags, without attributes of style, wrappers, navigation, forms and hidden
    parts; frames that are shown are listed.
    """
    found = read(harness, page, "knowledge")
    assert found["text"] == f"{KNOWLEDGE}</main>"
    for absent in ("Home", "Imprint", "Hidden", "Gone", "Order", "hunter2", "Name", "Deep"):
        assert absent not in found["text"]
    assert found["frames"] == [{"url": f"{page.url}/inner", "text": "<p>Inside</p>"}]


def test_automatic_is_what_operates_the_page(harness: BrowserHarness, page: WebServer) -> None:
    """Elements keep the attributes by which they are found; values of passwords, hidden parts and
    wrappers are left out; it is shorter than the HTML.
    """
    found = read(harness, page, "automatic")
    for kept in (
        '<nav aria-label="Main"><a href="/">Home</a></nav>',
        '<form action="/order"><label for="name">Name</label>',
        '<input id="name" name="name" placeholder="Your name">',
        '<input type="password" name="secret">',
        "<option selected>small</option>",
        '<div role="button" tabindex="0" aria-label="Plus"></div>',
        "<button disabled>Order</button>",
        "<button>Deep</button>",
        "They sleep hand in hand.",
    ):
        assert kept in found["text"], found["text"]
    for absent in ("hunter2", "Hidden", "Gone", "wrapper", "onfocus", "remark", "x9"):
        assert absent not in found["text"]
    assert len(found["text"]) < len(read(harness, page, "html")["text"])
    assert found["frames"][0]["text"] == "Inside\n<button>Inner</button>"


def test_a_long_text_is_cut_for_operation_only(harness: BrowserHarness) -> None:
    """A long paragraph is whole as knowledge, and begun for operation."""
    words = "kelp " * 100
    body = f"<!doctype html><p>{words}</p><button title='{words}'>Go</button>"
    with serving(lambda _: text(body, "text/html")) as site:
        assert read(harness, site, "knowledge")["text"].count("kelp") == 100
        assert read(harness, site, "automatic")["text"].count("kelp") == 80, "and an attribute"
