"""The fetch effect: what a reader gets of a page, and what is no page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from testbed.browsing import Browser, answered, failed
from testbed.roles import EffectHarness
from testbed.tool_loops import Clock
from testbed.webserver import Reply, Seen, WebServer, redirect, serving, text
from uncaged_effects.fetch import FetchHandler
from uncaged_effects.web.page import Page
from uncaged_engine.door.outcomes import Void
from uncaged_engine.effect_kinds import handler_for
from uncaged_engine.network.problems import RequestCancelled

PAGE = """<!doctype html>
<html><head><title> A &amp;
 page </title><style>p { color: red }</style><script>let a = "<p>no</p>";</script></head>
<body><h1>Head</h1>
<p>Hello <b>big</b> world, <a href="/x?y=1">a link</a>.<br>Second&nbsp;line</p>
<ul><li>one</li><li>two <i>it</i></li></ul>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre>code  x
  y</pre><div class="p">first</div><div class="p">the <em>second</em></div>
<img src="data:image/png;base64,AAAA" alt="dot"><img src="pic.png" alt="a picture"></body></html>"""

MARKDOWN = """# Head

Hello **big** world, [a link]({url}/x?y=1).
Second line

- one
- two *it*

| a | b |
| --- | --- |
| 1 | 2 |

```
code  x
  y
```

first

the *second*

![a picture]({url}/pic.png)"""

TEXT = "Head\nHello big world, a link.\nSecond line\none\ntwo it\na b\n1 2\ncode x\ny\nfirst\nthe second"

Read = Callable[..., Any]


def html(body: str) -> Reply:
    return text(body, "text/html; charset=utf-8")


def harness_for(browser: Browser, server: WebServer) -> EffectHarness:
    return browser.harness("fetch", {"hosts": [server.host], "private": True})


def read(browser: Browser, reply: Reply, **body: object) -> Any:
    with serving(lambda _: reply) as server:
        return answered(
            browser.perform(harness_for(browser, server), {"url": server.url, **body})
        ) | {"server": server.url}


@pytest.mark.slow
def test_a_page_as_markdown_is_the_default(browser: Browser) -> None:
    """Headings, lists, tables, code and links that lead somewhere are kept; scripts and other
    invisible parts are left out.
    """
    found = read(browser, html(PAGE))
    assert found["title"] == "A & page"
    assert found["text"].replace("\xa0", " ") == MARKDOWN.format(url=found["server"])
    assert found["url"] == found["server"] + "/"


def test_a_page_as_text(browser: Browser) -> None:
    """A page as text has one line for each block, wherever the source has line breaks."""
    assert read(browser, html(PAGE), **{"as": "text"})["text"] == TEXT


def test_a_page_as_html(browser: Browser) -> None:
    """A page as HTML is unchanged."""
    found = read(browser, html(PAGE), **{"as": "html"})
    assert (found["text"], found["title"]) == (PAGE, "A & page")


@pytest.mark.parametrize(
    ("selector", "inner"),
    [
        ("h1", "Head"),
        (".p", "first\nthe <em>second</em>"),
        ("li:last-child > i", "it"),
        ("p > a", "a link"),
    ],
)
def test_the_parts_that_a_selector_names(browser: Browser, selector: str, inner: str) -> None:
    """A single match gives its inner HTML, several are joined by line breaks; a selector implies
    its form.
    """
    assert read(browser, html(PAGE), selector=selector)["text"] == inner
    assert read(browser, html(PAGE), selector=selector, **{"as": "selector"})["text"] == inner


@pytest.mark.parametrize(
    ("selector", "words"),
    [(".absent", "nothing on the page matches '.absent'"), ("p[", "'p[' is no CSS selector")],
)
def test_a_selector_that_names_nothing_is_a_failure(
    browser: Browser, selector: str, words: str
) -> None:
    """A selector without a match is a failure, and so is an invalid one."""
    with serving(lambda _: html(PAGE)) as server:
        kind, message = failed(
            browser.perform(harness_for(browser, server), {"url": server.url, "selector": selector})
        )
    assert (kind, words in message) == ("selector", True)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (text("# plain *text*", "text/markdown"), "# plain *text*"),
        (text('{"a": 1}', "application/json"), '{"a": 1}'),
        (text("a <b>", "text/plain"), "a <b>"),
        (Reply(body=b"no type at all"), "no type at all"),
        (Reply(body=b" <p>no type, but a page</p>"), "no type, but a page"),
        (
            Reply(
                headers=[("Content-Type", "text/html")], body=b'<meta charset="latin-1"><p>\xfc</p>'
            ),
            "ü",
        ),
        (
            Reply(
                headers=[("Content-Type", "text/html; charset=utf-8")],
                body='<meta charset="latin-1"><p>ü</p>'.encode(),
            ),
            "ü",
        ),
    ],
)
def test_a_text_is_a_page_too(browser: Browser, reply: Reply, found: str) -> None:
    """Plain text stays as it is; a page may name its own charset."""
    assert read(browser, reply)["text"] == found


def test_what_is_no_page_is_a_failure(browser: Browser) -> None:
    """A picture, a status that is no success, a body that is too large."""
    with serving(
        lambda _: Reply(headers=[("Content-Type", "image/png")], body=b"\x89PNG\0")
    ) as server:
        kind, message = failed(browser.perform(harness_for(browser, server), {"url": server.url}))
        assert (kind, "no page but image/png; an http effect gets its bytes" in message) == (
            "body",
            True,
        )
    with serving(lambda _: text("<h1>not\n here</h1>", "text/html", status=404)) as server:
        kind, message = failed(browser.perform(harness_for(browser, server), {"url": server.url}))
        assert (kind, message.endswith("the server answered 404: <h1>not here</h1>")) == (
            "status",
            True,
        )
    with serving(lambda _: html("x" * 2000)) as server:
        harness = browser.harness(
            "fetch", {"hosts": [server.host], "private": True, "maxBytes": 1000}
        )
        kind, message = failed(browser.perform(harness, {"url": server.url}))
        assert (kind, "policy of 'fetch'" in message) == ("too-large", True)


def test_the_same_rules_hold_as_for_http(browser: Browser) -> None:
    """Under a policy of its own."""
    with serving(lambda _: redirect("http://169.254.169.254/")) as server:
        assert (
            failed(browser.perform(browser.harness("fetch", {}), {"url": server.url}))[0]
            == "refused-address"
        )
        assert (
            failed(
                browser.perform(
                    browser.harness("fetch", {"hosts": ["a.example"]}), {"url": server.url}
                )
            )[0]
            == "policy"
        )
        kind, message = failed(
            browser.perform(browser.harness("fetch", {"private": True}), {"url": server.url})
        )
        assert (kind, '"169.254.169.254" itself under hosts' in message) == (
            "refused-address",
            True,
        )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("https://a.example", "fetch: must be a mapping"),
        ({}, "fetch.url: is missing"),
        (
            {"url": "https://a.example", "as": "pdf"},
            "fetch.as: 'pdf' is not one of markdown, text, html, selector",
        ),
        ({"url": "https://a.example", "as": "selector"}, "fetch.selector: is a CSS selector"),
        (
            {"url": "https://a.example", "as": "text", "selector": "p"},
            "fetch.selector: is a CSS selector",
        ),
        ({"url": "https://a.example", "selector": 5}, "fetch.selector: must be text, not 5"),
        ({"url": "https://a.example", "headers": {}}, "unknown key 'headers'"),
        (
            {"url": "https://a.example", "timeout_s": -1},
            "fetch.timeout_s: must be a positive number",
        ),
        ({"url": "file:///etc/passwd"}, "file: addresses are not requested"),
    ],
)
def test_a_bad_body_is_a_failure(browser: Browser, body: object, words: str) -> None:
    """The bundle's author reads it; nothing was sent."""
    kind, message = failed(browser.perform(browser.harness("fetch", {}), body))
    assert (kind, words in message) == ("effect", True), message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("<!--" * 150_000, "timeout"),
        ("</" * 150_000, "timeout"),
        ("<a " * 150_000, "timeout"),
        ("<![CDATA[" * 100_000, "timeout"),
        ("<b>" * 3000, "body"),
        ("<" * 200_001, "too-large"),
    ],
)
def test_a_page_that_was_made_to_take_for_ever_does_not(
    browser: Browser, page: str, kind: str
) -> None:
    """Parsers that read it again and again from every tag on are stopped; so is one that goes too
    deep.
    """
    with serving(lambda _: html(page)) as server:
        with Clock() as clock:
            body = {"url": server.url, "timeout_s": 1 if kind == "timeout" else 30}
            found, message = failed(browser.perform(harness_for(browser, server), body))
        assert (found, "ask for it as html" in message) == (kind, True)
        assert clock.seconds < 60
        assert (
            answered(
                browser.perform(harness_for(browser, server), {"url": server.url, "as": "html"})
            )["text"]
            == page
        )


def test_each_step_of_the_work_looks_at_the_time() -> None:
    """Reading it, taking things out, and writing Markdown."""
    stops: list[bool] = []

    def check() -> None:
        if stops:
            raise RequestCancelled

    page = Page("<p>one <b>two</b></p>", "https://a.example/", check)
    assert page.markdown() == "one **two**"
    stops.append(True)
    for work in (
        page.markdown,
        lambda: Page("text", "https://a.example/", check),
        lambda: Page("<p>", "https://a.example/", check),
    ):
        with pytest.raises(RequestCancelled):
            work()


@pytest.mark.slow
def test_a_kill_ends_the_work_on_a_page(browser: Browser) -> None:
    """A kill ends the conversion of a page, not only the wait for it."""
    sent: list[EffectHarness] = []

    def script(_: Seen) -> Reply:
        def pieces() -> Any:
            yield b"<!--" * 150_000
            sent[0].cancel.request()

        return Reply(headers=[("Content-Type", "text/html")], body=pieces())

    with serving(script) as server, Clock() as clock:
        sent.append(harness_for(browser, server))
        assert isinstance(browser.perform(sent[0], {"url": server.url}), Void)
    assert clock.seconds < 60


def test_a_page_may_be_read_twice(browser: Browser) -> None:
    """After a crash it is; the engine finds the handler by its kind."""
    handler = handler_for("fetch")
    assert isinstance(handler, FetchHandler)
    assert (
        handler.rule({"url": "https://a.example"}, browser.harness("fetch", {}).bundle) == "repeat"
    )
