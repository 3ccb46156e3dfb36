"""Each operation, and each kind of failure, in both implementations of `BrowserControl`."""

from __future__ import annotations

import asyncio
import base64
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from testbed.browsers import PAIRING_PAGE, ControlledBrowser
from testbed.webserver import Reply, Seen, WebServer, redirect, serving, text
from uncaged_browser.operations import OPERATIONS, read_operation
from uncaged_browser.problems import BrowserProblem
from uncaged_browser.scope import BrowserScope
from uncaged_browser.secrets import BoundSecrets

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

FORM = """<title>Form</title><h1>Form</h1>
<label>Name <input id=name onkeydown="keys.textContent += event.key + ' '"></label>
<label for=colour>Colour</label><select id=colour><option>red<option>green<option value=b>blue</select>
<label><input type=checkbox id=news> News</label>
<label>Picture <input type=file id=file hidden onchange="document.title = this.files[0].name">
</label>
<button id=go onclick="document.title = 'trusted ' + event.isTrusted">Go</button>
<button ondblclick="document.title = 'twice'">Twice</button>
<button disabled>Off</button><button>Same</button><button>Same</button>
<p id=keys></p><p onmouseover="document.title = 'over'">Hover here</p>
<form action=/sent><input name=q aria-label=Search></form>
<a href=/second>Second page</a> <a href=/third target=_blank>New window</a>
<button onclick="window.open('/third')">Open window</button>
<button onclick="document.title = 'said ' + confirm('sure?')">Ask</button>
<button onclick="setTimeout(() => document.body.append(Object.assign(
  document.createElement('mark'), {textContent: 'Late'})), 300)">Later</button>
<button onclick="setTimeout(() => this.remove(), 300)">Vanish</button>
<div draggable=true id=card ondragstart="event.dataTransfer.setData('text', 'card')">Card</div>
<div id=box style="width: 90px; height: 50px" ondragover="event.preventDefault()"
  ondrop="event.preventDefault(); document.title = 'dropped ' + event.dataTransfer.getData('text')">
Box</div>
<script>document.modelContext.registerTool({name: 'double', description: 'Doubles a number.',
  inputSchema: {type: 'object', properties: {n: {type: 'number'}}, required: ['n']},
  execute: async ({n}) => ({content: [{type: 'text', text: String(2 * n)}]})});</script>
<div style="height: 3000px"></div><p id=end>The end</p><!-- remark -->"""
FRAMES = """<title>Frames</title><h1>Frames</h1><iframe id=outer src=/inner></iframe>
<iframe id=foreign src=OTHER/inner></iframe><div id=host></div><script>
document.getElementById('host').attachShadow({mode: 'open'}).innerHTML =
  '<button>Shadow</button>';
document.querySelector('#host').shadowRoot.querySelector('button')
  .onclick = () => { document.title = 'from the shadow'; };</script>"""
INNER = """<title>Inner</title><button onclick="this.textContent = 'pressed'">Inner</button>"""
SIMPLE = "<title>{0} page</title><h1>{0}</h1><a href=/form>Form</a>"
NAMED = (
    "<title>Named</title><{} data-testid=button style='display:block;width:9em;height:2em' title='{}'"
    " onclick=\"document.title = 'Clicked'\">{}</{}>"
)
BUSY = "<title>Busy</title><button onclick='for (;;);'>Hang</button>"


def button(name: str) -> dict[str, str]:
    return {"role": "button", "name": name}


@pytest.fixture(scope="module")
def site() -> Iterator[WebServer]:
    """A site with one page for each subject."""

    def answer(request: Seen) -> Reply:
        path, _, query = request.path.partition("?")
        other = f"http://localhost:{request.headers['host'].rpartition(':')[2]}"
        match path:
            case "/form":
                page = FORM
            case "/frames":
                page = FRAMES.replace("OTHER", other)
            case "/inner":
                page = INNER
            case "/busy":
                page = BUSY
            case "/leaving":
                page = f"<form method=post action={other}/stolen><button>Leave</button></form>"
            case "/circle":
                return redirect("/circle")
            case "/named":
                element, name, title = unquote(query).split("|")
                page = NAMED.format(element, title, name, element.split()[0])
            case "/never":
                server.ended.wait(120)
                return text("late")
            case _:
                page = SIMPLE.format((path.strip("/") + query).capitalize())
        return text(f"<!doctype html>{page}", "text/html; charset=utf-8")

    with serving(answer) as server:
        yield server


@pytest.fixture
def browser(both_browsers: ControlledBrowser) -> Iterator[ControlledBrowser]:
    """The browser with one empty tab; all others are closed after the test."""
    yield both_browsers
    both_browsers.close_tabs()


@pytest.fixture
def form(browser: ControlledBrowser, site: WebServer) -> Callable[[], str]:
    """The page with all controls, open; returns its title."""
    browser.show(f"{site.url}/form")
    return lambda: str(browser.do("address")["title"])


def test_tabs_are_opened_listed_switched_and_closed(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """Tabs keep their ids; the one that was opened or chosen last is current."""
    first = browser.do("open", url=f"{site.url}/first")["tab"]
    second = browser.show(f"{site.url}/second")
    listed = {tab["tab"]: tab for tab in browser.do("tabs")}
    assert listed[first]["title"] == "First page"
    assert listed[first]["url"] == f"{site.url}/first"
    assert [tab for tab in listed if listed[tab]["current"]] == [second]
    assert browser.do("switch", words="first page")["tab"] == first
    assert browser.do("address")["tab"] == first
    assert browser.do("switch", tab=second)["current"]
    drifted = browser.do("switch", tab=first, expect={"heading": "Second"}, timeout_s=1)
    assert drifted["drift"], drifted
    assert "drift" not in browser.do("switch", tab=second, expect={"heading": "Second"})
    assert browser.do("text", tab=first)["url"] == f"{site.url}/first"
    assert browser.problem("switch", words="page").kind == "ambiguous"
    assert browser.problem("switch", words="tenth").kind == "not-found"
    assert browser.problem("switch", tab="999999").kind == "closed"
    assert browser.problem("switch").kind == "unsupported"
    assert browser.do("close", tab=first)["tab"] == first
    assert first not in {tab["tab"] for tab in browser.do("tabs")}
    assert browser.problem("text", tab=first).kind == "closed"


def test_a_tab_goes_through_its_history(browser: ControlledBrowser, site: WebServer) -> None:
    """Navigation, back, forward and reload keep the tab; a history without another page says so."""
    tab = browser.show(f"{site.url}/first")
    browser.do("navigate", url=f"{site.url}/second")
    assert browser.do("back")["url"] == f"{site.url}/first"
    assert browser.do("forward")["title"] == "Second page"
    assert browser.do("reload")["tab"] == tab
    assert browser.problem("forward").kind == "navigation"
    assert [seen.path for seen in site.seen].count("/second") >= 2


def test_a_page_is_read_in_each_form(
    browser: ControlledBrowser, site: WebServer, form: Callable[[], str]
) -> None:
    """Text, HTML, page view and picture are of the page as it is now."""
    del site, form
    assert "Hover here" in browser.do("text")["text"]
    assert browser.do("text", target={"css": "#end"})["text"] == "The end"
    assert "<!-- remark -->" in browser.do("html")["text"]
    clean = browser.do("html", **{"as": "clean"})["text"]
    assert "remark" not in clean
    assert "onclick" not in clean
    assert "<h1>" not in browser.do("html", **{"as": "text"})["text"]
    assert '<button id="go">Go</button>' in browser.do("html", **{"as": "automatic"})["text"]
    assert "<p>Hover here</p>" in browser.do("html", **{"as": "knowledge"})["text"]
    listed = browser.do("elements", number=0)
    assert [one.get("name") for one in listed["elements"]].count("Go") == 1
    assert listed["names"]
    [listed_form] = browser.do("forms")["forms"]
    assert [one["labels"] for one in listed_form["fields"]] == [["Search"]]
    offered = {one["name"]: one for one in browser.do("actions")["actions"]}
    assert {"button:go", "link:second-page", "page:double"} <= set(offered), list(offered)
    assert offered["page:double"]["parameters"]["required"] == ["n"]
    assert '"text":"42"' in browser.do("call", name="double", arguments={"n": 21})["text"]
    view = browser.do("view")["text"]
    reference = re.search(r'button "Go" \[ref=(\w+)\]', view)
    assert reference is not None, view
    browser.do("click", target={"ref": reference[1]})
    assert browser.do("address")["title"] == "trusted true"
    whole = base64.b64decode(browser.do("screenshot", full=True)["png"])
    part = base64.b64decode(browser.do("screenshot", target={"css": "#go"})["png"])
    assert whole.startswith(b"\x89PNG")
    assert int.from_bytes(whole[20:24], "big") > 3000
    assert int.from_bytes(part[20:24], "big") < 100


def test_a_reference_means_its_own_element_or_none(
    browser: ControlledBrowser, site: WebServer, form: Callable[[], str]
) -> None:
    """A reference whose element is gone, renamed, or of another page is refused, never used."""

    def reference(name: str) -> str:
        found = re.search(rf'"{name}" \[ref=(\w+)\]', browser.do("view")["text"])
        assert found is not None, name
        return found[1]

    def refusal(ref: str) -> str:
        problem = browser.problem("click", target={"ref": ref})
        assert problem.kind == "not-found"
        return str(problem)

    form()
    go, vanish = reference("Go"), reference("Vanish")
    assert reference("Go") == go, "an element keeps its reference"
    browser.do("click", target={"ref": vanish})
    browser.do("wait", **{"for": "gone"}, target=button("Vanish"))
    assert 'button "Vanish" is gone from the page' in refusal(vanish)
    browser.do("navigate", url=f"{site.url}/inner")
    inner = reference("Inner")
    browser.do("click", target={"ref": inner})
    assert 'its element is no longer button "Inner"' in refusal(inner)
    assert "no element of the current page view has it" in refusal(go)
    pressed = reference("pressed")
    browser.do("reload")
    assert "the page that it was of is no longer shown" in refusal(pressed)
    browser.do("view")
    assert "take a new page view" in refusal(pressed)
    assert "take a new page view" in refusal("e12")
    browser.do("navigate", url=f"{site.url}/frames")
    browser.do("click", target={"ref": reference("Shadow")})
    assert browser.do("address")["title"] == "from the shadow"
    browser.do("click", target={"ref": reference("Inner")})
    assert "pressed" in browser.do("view")["text"]


def test_clicks_are_those_of_a_person(browser: ControlledBrowser, form: Callable[[], str]) -> None:
    """A click is trusted by the page; a double click, a place in the element and a hover work."""
    browser.do("click", target=[{"css": "#absent"}, button("Go")], offset=[5, 5])
    assert form() == "trusted true"
    browser.do("click", target=button("Twice"), times=2)
    assert form() == "twice"
    browser.do("hover", target={"text": "Hover here"})
    assert form() == "over"
    browser.do("drag", target={"css": "#card"}, onto={"css": "#box"})
    assert form() == "dropped card"


def test_fields_take_text_keys_choices_and_files(
    browser: ControlledBrowser, site: WebServer, form: Callable[[], str], tmp_path: Path
) -> None:
    """Each kind of field gets what the operation says."""
    name = {"label": "Name"}
    browser.do("fill", target=name, text="Ann")
    browser.do("type", target=name, text="ie")
    browser.do("press", key="Shift+X")
    browser.do("type", text="y")
    browser.do("press", target=name, key="ArrowLeft")
    assert browser.do("text", target={"css": "#keys"})["text"] == "i e Shift X y ArrowLeft"
    assert 'textbox "Name"' in browser.do("view")["text"]
    assert browser.do("select", target={"label": "Colour"}, options=["blue"])["selected"] == ["b"]
    browser.do("check", target={"label": "News"})
    assert 'checkbox "News" [checked]' in browser.do("view")["text"]
    browser.do("check", target={"label": "News"}, checked=False)
    assert 'checkbox "News" [checked]' not in browser.do("view")["text"]
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"cat")
    browser.do("upload", target={"css": "#file"}, files=[str(picture)])
    assert form() == "cat.png"
    browser.do("fill", target={"label": "Search"}, text="shoes", submit=True)
    browser.do("wait", **{"for": "element"}, target={"role": "heading", "name": "Sentq=shoes"})
    assert browser.do("address")["url"] == f"{site.url}/sent?q=shoes"


def test_a_page_is_scrolled_and_zoomed(browser: ControlledBrowser, form: Callable[[], str]) -> None:
    """Scrolling reports where the page is, and that an end is reached."""
    del form
    assert browser.do("scroll")["y"] > 0
    assert browser.do("scroll", direction="bottom")["moved"]
    assert not browser.do("scroll", direction="down")["moved"]
    assert browser.do("scroll", direction="top")["y"] == 0
    browser.do("scroll", target={"css": "#end"})
    assert browser.do("scroll", direction="up")["moved"]
    assert browser.do("zoom", factor=2) == {"factor": 2}
    assert browser.problem("zoom", factor=50).kind == "unsupported"


def test_a_page_is_read_aloud(browser: ControlledBrowser, form: Callable[[], str]) -> None:
    """The text of the page or an element is read by a voice of this machine, until it is stopped or
    the page is left.
    """
    form()
    answer = browser.do("speak", target={"css": "#end"})
    assert (answer["voice"], answer["characters"]) == ("Test voice", len("The end"))
    assert browser.spoken()[-1] == "Test voice: The end"
    assert browser.do("stop_speaking") == {"stopped": 1}
    assert browser.do("stop_speaking") == {"stopped": 0}
    browser.do("speak")
    assert browser.spoken()[-1] == "Test voice: Form", "the page's first line"
    browser.do("speak", target={"css": "#end"})
    assert browser.spoken()[-1] == "Test voice: The end", "it replaces the one before"
    tab = browser.do("address")["tab"]
    browser.do("reload")
    assert browser.do("stop_speaking", tab=tab) == {"stopped": 0}
    page = page_at(browser, browser.do("address")["url"])
    browser.run(page.evaluate("() => { document.documentElement.lang = 'de-AT'; }"))
    assert browser.do("speak", target={"css": "#end"})["voice"] == "Stimme"
    browser.run(page.evaluate("() => { document.documentElement.lang = 'fr'; }"))
    assert browser.do("speak", target={"css": "#end"})["voice"] != "Server", "it would be sent"
    browser.run(page.evaluate("() => { document.body.innerHTML = '<p id=end>'; }"))
    assert "there is no text" in str(browser.problem("speak"))


def test_a_secret_is_not_read_aloud(
    browser: ControlledBrowser, site: WebServer, form: Callable[[], str]
) -> None:
    """Of a secret that was typed and that the page shows, its name is read."""
    form()
    secrets = BoundSecrets(values={"SHOP": "correct horse"}, hosts={"SHOP": [site.host]})
    fill = {"do": "fill", "target": {"css": "#name"}, "text": "secret:SHOP"}
    browser.run(browser.control.perform(read_operation(fill), secrets))
    page = page_at(browser, browser.do("address")["url"])
    browser.run(
        page.evaluate(
            "() => { keys.textContent = `It is ${document.querySelector('#name').value}`; }"
        )
    )
    browser.do("speak", target={"css": "#keys"})
    assert browser.spoken()[-1] == "Test voice: It is secret:SHOP"


def test_the_person_is_shown_the_agent_s_status_and_settings(
    browser: ControlledBrowser, form: Callable[[], str]
) -> None:
    """The extension shows a status on its button until another one, and opens its settings beside
    the tab under control; without the extension, nothing is shown, and there are no settings.
    """
    with_extension = browser.listener is not None
    assert browser.do("status", text="Ordering", busy=True) == {"shown": with_extension}
    assert form() == "Form"
    if not with_extension:
        assert browser.problem("settings").kind == "unsupported"
        return
    until(browser, lambda: button_of(browser), ["…", "uncaged-workflow Ordering"])
    assert browser.do("settings") == {"opened": True}
    until(browser, lambda: PAIRING_PAGE in [page.url for page in browser.context.pages], True)
    assert form() == "Form"
    browser.do("status")
    until(browser, lambda: button_of(browser), ["on", "uncaged-workflow"])


def test_links_are_followed(browser: ControlledBrowser, form: Callable[[], str]) -> None:
    """A link is followed by its words or its position, in the tab or in a new window."""
    assert browser.do("follow", words="second")["title"] == "Second page"
    browser.do("back")
    assert browser.do("follow", position=1)["title"] == "Second page"
    browser.do("back")
    tab = browser.do("address")["tab"]
    assert browser.do("follow", words="new window")["title"] == "Third page"
    assert browser.do("address")["tab"] != tab
    browser.do("switch", tab=tab)
    browser.do("click", target=button("Open window"), wait=True)
    assert form() == "Third page"
    assert [page["title"] for page in browser.do("tabs")].count("Third page") == 2
    assert browser.problem("follow", words="absent", tab=tab).kind == "not-found"
    assert browser.problem("follow", position=9, tab=tab).kind == "not-found"


def test_waiting_ends_with_its_moment(browser: ControlledBrowser, form: Callable[[], str]) -> None:
    """Waits for an element, its end, a load and an idle network end; one in vain is a time-out."""
    del form
    browser.do("click", target=button("Later"))
    browser.do("wait", **{"for": "element"}, target={"text": "Late"})
    browser.do("click", target=button("Vanish"))
    browser.do("wait", **{"for": "gone"}, target=button("Vanish"))
    browser.do("wait", **{"for": "load"})
    browser.do("wait", **{"for": "idle"})
    missed = browser.problem("wait", **{"for": "navigation"}, timeout_s=0.2)
    assert missed.kind == "timeout"
    browser.do("click", target={"role": "link", "name": "Second page"}, wait=True)
    assert browser.do("address")["title"] == "Second page"


def test_frames_and_shadow_roots_are_reached(browser: ControlledBrowser, site: WebServer) -> None:
    """Elements of a frame, of a frame of another site, and of a shadow root are operated."""
    browser.show(f"{site.url}/frames")
    for frame in ("#outer", "#foreign"):
        browser.do("click", target=button("Inner"), frame=[{"css": frame}])
        shown = browser.do("text", target={"css": "button"}, frame=[{"css": frame}])
        assert shown["text"] == "pressed"
    browser.do("click", target=button("Shadow"))
    assert browser.do("address")["title"] == "from the shadow"


def test_a_dialog_is_dismissed(browser: ControlledBrowser, form: Callable[[], str]) -> None:
    """A page's question gets no as its answer, and the page goes on."""
    browser.do("click", target=button("Ask"))
    assert form() == "said false"


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (button("Absent"), "not-found"),
        (button("Same"), "ambiguous"),
        (button("Off"), "timeout"),
        ({"css": "##"}, "refused"),
    ],
)
def test_an_element_that_cannot_be_clicked_is_reported(
    browser: ControlledBrowser, form: Callable[[], str], target: dict[str, Any], kind: str
) -> None:
    """An absent, ambiguous, disabled or malformed target fails its own operation only."""
    problem = browser.problem("click", target=target, timeout_s=0.5)
    assert problem.kind == kind
    assert (len(problem.candidates) == 2) is (kind == "ambiguous")
    assert form() == "Form"


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        ("button|Delete|", "not-found"),
        ("button|Unfollow|", "not-found"),
        ("button|Follow Ann|", ""),
        ("button||", ""),
        ("button|Ann|Delete nothing", ""),
        ("a role=link|Delete a kernel|", ""),
    ],
)
def test_a_control_that_promises_another_action_is_not_clicked(
    browser: ControlledBrowser, site: WebServer, element: str, kind: str
) -> None:
    """A mark of the page's program finds it, and its name says that it is not the one of the
    target; a name that is only longer, or none, is no other action, nor is a title that was not
    compared, nor a link, whose name may be data.
    """
    browser.show(f"{site.url}/named?{element}")
    target = [{"role": "button", "name": "Follow"}, {"testId": "button"}]
    if kind:
        problem = browser.problem("click", target=target, timeout_s=3)
        name = element.split("|")[1]
        assert (problem.kind, f'is now button "{name}"' in str(problem)) == (kind, True)
    else:
        browser.do("click", target=target)
    assert browser.do("address")["title"] == ("Named" if kind else "Clicked")


def test_what_was_noted_of_a_control_tells_whether_it_is_another(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """Its title promised the same when it was noted; one without any name promises nothing else."""
    browser.show(f"{site.url}/named?button|Follow Ann|Send her a note")
    target = [{"role": "button", "name": "Follow"}, {"testId": "button"}]
    facts = {"role": "button", "name": "Follow", "title": "Send them a note"}
    browser.do("click", target=target, facts=facts)
    assert browser.do("address")["title"] == "Clicked"
    browser.show(f"{site.url}/named?button|Follow Ann|Delete the note")
    assert browser.problem("click", target=target, facts=facts, timeout_s=3).kind == "not-found"
    browser.show(f"{site.url}/named?button||")
    browser.do("click", target=[{"role": "button", "name": "Do not follow"}, {"testId": "button"}])
    assert browser.do("address")["title"] == "Clicked"


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("SITE/circle", "navigation"),
        ("SITE/never", "timeout"),
        ("http://127.0.0.1:9/", "navigation"),
        ("javascript:alert(1)", "blocked"),
        ("file:///etc/passwd", "blocked"),
        ("chrome://version", "blocked"),
        ("http://[x", "blocked"),
        ("http://example.org:x/", "blocked"),
    ],
)
def test_an_address_that_cannot_be_loaded_is_reported(
    browser: ControlledBrowser, site: WebServer, address: str, kind: str
) -> None:
    """A page that never loads, redirects in circles or is not of the web fails; the tab stays."""
    tab = browser.show(f"{site.url}/first")
    url = address.replace("SITE", site.url)
    timeout_s = 1 if kind == "timeout" else 60
    assert browser.problem("navigate", url=url, timeout_s=timeout_s).kind == kind
    assert browser.do("navigate", url=f"{site.url}/second")["tab"] == tab


def test_a_page_that_hangs_fails_only_its_own_calls(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """Calls on a busy page end with a time-out; other tabs work, and the busy one is closed."""
    busy = browser.show(f"{site.url}/busy")
    other = browser.show(f"{site.url}/first")
    assert browser.problem("click", tab=busy, target=button("Hang"), timeout_s=1).kind == "timeout"
    assert browser.problem("text", tab=busy, timeout_s=0.5).kind == "timeout"
    assert browser.do("text", tab=other)["text"].startswith("First")
    browser.do("close", tab=busy)
    assert busy not in {tab["tab"] for tab in browser.do("tabs")}


def test_a_crashed_page_is_loaded_again_in_its_tab(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """A crash fails the calls on its tab until it is reloaded; then it has its id and address."""
    other = browser.show(f"{site.url}/second")
    tab = browser.show(f"{site.url}/first")
    crash(browser, f"{site.url}/first")
    assert browser.problem("text", timeout_s=2).kind == "crashed"
    assert browser.problem("click", target=button("Go"), timeout_s=2).kind == "crashed"
    assert browser.do("text", tab=other)["text"].startswith("Second")
    assert browser.do("reload", tab=tab)["tab"] == tab
    assert browser.do("address", tab=tab)["url"] == f"{site.url}/first"
    assert browser.do("text")["text"].startswith("First")
    assert [found["tab"] for found in browser.do("tabs")].count(tab) == 1


def test_a_tab_that_a_person_closes_fails_its_own_calls(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """A tab that disappears is reported as closed, and another takes its place."""
    kept, tab = browser.show(f"{site.url}/first"), browser.show(f"{site.url}/second")
    browser.run(page_at(browser, f"{site.url}/second").close())
    assert browser.problem("text", tab=tab, timeout_s=2).kind == "closed"
    assert browser.do("address", tab=kept)["title"] == "First page"


def test_a_switch_knows_the_tabs_of_the_caller_s_scope_alone(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """Tabs elsewhere are neither named nor shown, and do not make words ambiguous; a switch leads
    away from them.
    """
    inside = browser.show(f"{site.url}/first")
    outside = browser.show(f"http://localhost:{site.port}/first?secret")
    scope = BrowserScope.of([site.host])

    def switch(**body: str) -> Any:
        operation = read_operation({"do": "switch", **body})
        return browser.run(browser.control.perform(operation, scope=scope))

    for body, kind in (({"words": "secret"}, "not-found"), ({"tab": outside}, "closed")):
        with pytest.raises(BrowserProblem) as caught:
            switch(**body)
        assert caught.value.kind == kind
        assert "localhost" not in str(caught.value) and not caught.value.candidates
        assert browser.do("address")["tab"] == outside, "it is current as before"
    browser.do("switch", tab=inside)
    with pytest.raises(BrowserProblem):
        switch(words="secret")
    assert browser.do("address")["tab"] == inside
    browser.do("switch", tab=outside)
    assert switch(words="page")["tab"] == inside


def test_a_form_is_not_sent_outside_of_the_caller_s_scope(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """In a context without limits, the scope of one caller stops the load of another host's page,
    and the data that would go there; the page stays.
    """
    browser.show(f"{site.url}/leaving")
    click = read_operation({"do": "click", "target": button("Leave")})
    scope = BrowserScope.of([site.host])
    with pytest.raises(BrowserProblem, match="blocked"):
        browser.run(browser.control.perform(click, scope=scope))
    assert [one for one in site.seen if one.path == "/stolen"] == []
    assert browser.do("address")["url"] == f"{site.url}/leaving"


def test_each_operation_is_in_this_suite() -> None:
    """The table of operations has none that the tests above do not perform."""
    source = Path(__file__).read_text("utf-8")
    assert set(OPERATIONS) == set(re.findall(r'browser\.do\(\s*"(\w+)"', source))


def until(browser: ControlledBrowser, read: Callable[[], object], wanted: object) -> None:
    """Wait until a value is as it should be."""
    end_s = time.monotonic() + 120
    while (found := read()) != wanted:
        assert time.monotonic() < end_s, found
        browser.run(asyncio.sleep(0.02))


def button_of(browser: ControlledBrowser) -> list[str]:
    """Badge and title of the extension's button."""
    workers = browser.context.service_workers
    [worker] = [one for one in workers if one.url.endswith("/service_worker.js")]
    script = "() => Promise.all([chrome.action.getBadgeText({}), chrome.action.getTitle({})])"
    found: list[str] = browser.run(worker.evaluate(script))
    return found


def page_at(browser: ControlledBrowser, url: str) -> Any:
    """The browser's own page at an address, past the control."""
    [found] = [page for page in browser.context.pages if page.url == url]
    return found


def crash(browser: ControlledBrowser, url: str) -> None:
    """Crash the renderer of a page."""

    async def send() -> None:
        page = page_at(browser, url)
        session = await browser.context.new_cdp_session(page)
        async with page.expect_event("crash"):
            crashing = asyncio.ensure_future(session.send("Page.crash"))
        crashing.cancel()

    browser.run(send())
