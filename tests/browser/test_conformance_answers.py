"""Pages by name, searches, knowledge and questions, in both implementations of `BrowserControl`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from testbed.browsers import ControlledBrowser
from testbed.webserver import Reply, Seen, WebServer, serving, text
from uncaged_browser.knowledge.answers import answer_from, nearest_in_page
from uncaged_browser.knowledge.index import KnowledgeIndex
from uncaged_browser.knowledge.pages import read_page
from uncaged_browser.lookup.performing import looked_up
from uncaged_browser.lookup.requests import FindPage, SearchWeb
from uncaged_browser.operations import read_operation
from uncaged_browser.problems import BrowserProblem
from uncaged_browser.questions.answering import PageQuestioner
from uncaged_browser.questions.requests import CheckPageState, Extract, ExtractComponent
from uncaged_browser.questions.selectors import KeptSelectors
from uncaged_engine.services.settings import BrowserSettings, Resolver
from uncaged_models.questions import ModelData, ModelQuestion

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

OTTERS = """<title>Sea otters</title><h1>Sea otters</h1>
<h2>Sleep</h2><p>Otters sleep in kelp, hand in hand.</p><h2>Food</h2><p>They eat urchins.</p>
<label>Password <input type=password value=hunter2></label>
<button onclick="document.title = 'ordered'">Order now</button><button>Order later</button>"""
RESULTS = "<title>Results</title><h2><a href=/help>Help</a></h2><h2><a href=/otters>Otters</a></h2>"
SCHEMA = {"type": "object", "properties": {"food": {"type": "string"}}, "required": ["food"]}


@pytest.fixture(scope="module")
def site() -> Iterator[WebServer]:
    """A site with an article, a search and an encyclopedia that knows one article."""

    def answer(request: Seen) -> Reply:
        path = request.path.partition("?")[0]
        pages = {"/otters": OTTERS, "/wiki/otters": OTTERS, "/results": RESULTS}
        page = pages.get(path)
        kind = "text/html; charset=utf-8"
        return text("absent", status=404) if page is None else text(f"<!doctype html>{page}", kind)

    with serving(answer) as server:
        yield server


@pytest.fixture
def browser(both_browsers: ControlledBrowser) -> Iterator[ControlledBrowser]:
    """The browser with one empty tab; all others are closed after the test."""
    yield both_browsers
    both_browsers.close_tabs()


def performing(browser: ControlledBrowser) -> Callable[..., Any]:
    """What performs the operation of a mapping, as a session does."""

    def perform(body: Mapping[str, object], timeout_s: float = 30) -> Any:
        del timeout_s
        return browser.run(browser.control.perform(read_operation(body)))

    return perform


def settings(site: WebServer, *resolvers: Resolver) -> BrowserSettings:
    return BrowserSettings(
        resolvers=resolvers,
        search="house",
        providers={"house": f"{site.url}/results?q={{text}}"},
        encyclopedia=f"{site.url}/wiki/{{text}}",
        keywords={"my animals": f"{site.url}/otters"},
    )


@pytest.mark.parametrize(
    ("resolver", "found_by"),
    [
        ("search", ("otters", "/otters")),
        ("keyword", ("My animals", "/otters")),
        ("encyclopedia", ("otters", "/wiki/otters")),
        ("history", ("sea otters", "/otters")),
    ],
)
def test_a_page_is_found_by_its_name(
    browser: ControlledBrowser,
    site: WebServer,
    tmp_path: Path,
    resolver: Resolver,
    found_by: tuple[str, str],
) -> None:
    """Each resolver opens the page in a new tab, and leaves none open where it finds nothing."""
    words, path = found_by
    history = tmp_path / "knowledge.sqlite3"
    browser.show(f"{site.url}/otters")
    KnowledgeIndex(history).add(read_page(performing(browser), 1))
    before = len(browser.do("tabs"))
    chosen = settings(site, resolver)
    found = looked_up(FindPage(words=words), chosen, history, performing(browser))
    assert (found["url"], found["resolver"]) == (f"{site.url}{path}", resolver)
    tabs = browser.do("tabs")
    assert len(tabs) == before + 1
    assert [tab["tab"] for tab in tabs if tab["current"]] == [found["tab"]]
    with pytest.raises(BrowserProblem, match="no page was found for 'zebras'"):
        looked_up(FindPage(words="zebras"), chosen, history, performing(browser))
    assert len(browser.do("tabs")) == before + 1


def test_a_search_shows_its_results_in_the_current_tab(
    browser: ControlledBrowser, site: WebServer
) -> None:
    """The words are a part of the address, whatever characters they have."""
    tab = browser.show(f"{site.url}/otters")
    search = SearchWeb(words="kelp & ötters?")
    found = looked_up(search, settings(site), None, performing(browser))
    assert (found["tab"], found["title"], found["provider"]) == (tab, "Results", "house")
    assert found["url"] == f"{site.url}/results?q=kelp%20%26%20%C3%B6tters%3F"


def test_a_question_is_answered_from_the_page(browser: ControlledBrowser, site: WebServer) -> None:
    """The page is read with its headings, its field for a password makes it private, and the
    nearest passage answers.
    """
    browser.show(f"{site.url}/otters")
    page = read_page(performing(browser), 1)
    assert (page.url, page.title, page.has_secrets) == (f"{site.url}/otters", "Sea otters", True)
    assert page.headings == ("Sea otters", "Sleep", "Food")
    question = "where do otters sleep?"
    answer = answer_from(question, nearest_in_page(page, question), "", None)
    assert "Otters sleep in kelp" in answer.citations[0].passage.text
    assert answer.citations[0].passage.url == page.url


def test_a_model_answers_from_the_view_of_the_page(
    browser: ControlledBrowser, site: WebServer, tmp_path: Path
) -> None:
    """The model gets the page view without passwords; the element that it names is kept, found
    again without it, and can be clicked.
    """
    asked: list[str] = []

    def model(question: ModelQuestion) -> ModelData:
        asked.append(question.prompt)
        if question.schema is SCHEMA:
            value: object = {"food": "urchins"}
        elif "matched" in question.schema["properties"]:
            value = {"matched": "Order now" in question.prompt, "explanation": "a button"}
        else:
            reference = re.search(r'button "Order now" \[ref=(e\d+)\]', question.prompt)
            assert reference is not None, question.prompt
            value = {"found": True, "ref": reference[1], "text": "", "explanation": "the button"}
        return ModelData(value=value, fits=True, problem="", usage={})

    browser.show(f"{site.url}/otters")
    selectors = KeptSelectors(tmp_path / "selectors.json")
    questioner = PageQuestioner(performing(browser), model, selectors)
    extracted: Any = questioner.answer(Extract(schema=SCHEMA, text="the food"))
    assert extracted == {"url": f"{site.url}/otters", "data": {"food": "urchins"}}
    assert "They eat urchins." in asked[-1]
    state: Any = questioner.answer(CheckPageState(text="one can order"))
    assert state["matched"] is True
    first: Any = questioner.answer(ExtractComponent(text="the button that orders at once"))
    browser.do("reload")
    again: Any = questioner.answer(ExtractComponent(text="the button that orders at once"))
    assert (first["by"], again["by"], len(asked)) == ("model", "selector", 3)
    assert not any("hunter2" in prompt for prompt in asked)
    browser.do("click", target=again["target"])
    assert browser.do("address")["title"] == "ordered"
