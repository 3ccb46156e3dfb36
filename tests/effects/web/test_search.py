"""The search effect: a provider that the person names, asked in its own way."""

from __future__ import annotations

import pytest
from testbed.browsing import Browser, answered, failed
from testbed.webserver import Reply, Seen, data, redirect, serving, text
from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_bundles.storage.store import Store
from uncaged_effects.search import SearchHandler
from uncaged_engine.effect_kinds import handler_for
from uncaged_engine.settings.config import Config, SearchSettings, SecretSource
from uncaged_engine.settings.loading import load

HITS = {
    "query": "q",
    "results": [
        {
            "url": "https://a.example/",
            "title": " First\n hit ",
            "content": "what  it says",
            "engine": "x",
            "score": 2,
        },
        {"url": "https://b.example/", "title": None},
        {"title": "without an address"},
        "nonsense",
        {"url": "https://c.example/", "title": "Third", "content": "c"},
    ],
}


def settings(url: str, key: str | None = None) -> Config:
    return Config(
        search=SearchSettings(use="searxng", url=url, key=key),
        secrets={"SEARCH": SecretSource(env="SEARCH_KEY")},
    )


def test_results_have_one_shape(browser: Browser) -> None:
    """Title, address and snippet of each, best first, as many as were asked for."""
    with serving(lambda _: data(HITS)) as server:
        harness = browser.harness("search", {}, config=settings(server.url + "/sx/"))
        assert answered(browser.perform(harness, {"query": " ü & b "})) == {
            "results": [
                {"title": "First hit", "url": "https://a.example/", "snippet": "what it says"},
                {"title": "", "url": "https://b.example/", "snippet": ""},
                {"title": "Third", "url": "https://c.example/", "snippet": "c"},
            ]
        }
        assert server.seen[0].path == "/sx/search?q=%C3%BC+%26+b&format=json"
        assert len(answered(browser.perform(harness, {"query": "q", "limit": 2}))["results"]) == 2


def test_a_key_goes_to_the_provider_and_nowhere_else(browser: Browser) -> None:
    """A key is in no outcome, even if the provider sends it back."""

    def script(seen: Seen) -> Reply:
        return data(
            {"results": [{"url": "https://a.example/", "title": seen.headers["authorization"]}]}
        )

    with serving(script) as server:
        harness = browser.harness(
            "search", {}, {"SEARCH_KEY": "planted-key"}, settings(server.url, "secret:SEARCH")
        )
        assert (
            answered(browser.perform(harness, {"query": "q"}))["results"][0]["title"]
            == "Bearer secret:SEARCH"
        )
        assert server.seen[0].headers["authorization"] == "Bearer planted-key"
        unset = browser.harness("search", {}, {}, settings(server.url, "secret:SEARCH"))
        with pytest.raises(
            EnvironmentLacks, match="secret:SEARCH comes from the variable SEARCH_KEY"
        ):
            browser.perform(unset, {"query": "q"})


def test_without_a_provider_the_machine_lacks_one(browser: Browser) -> None:
    """The thread is paused, with the key of config.yaml that has to be set."""
    with pytest.raises(
        EnvironmentLacks,
        match=r"add `search: \{use: searxng, url: https://ADDRESS\}` to config\.yaml, then resume",
    ):
        browser.perform(browser.harness("search", {}), {"query": "q"})


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (text("no", status=401), "wants a key that it knows"),
        (text("no", status=403), "add `json` to search.formats in its settings.yml"),
        (text("no", status=404), "there is no SearXNG at"),
        (text("<html>", "text/html"), "does not answer as SearXNG does"),
        (data([1]), "does not answer as SearXNG does"),
        (data({"results": 5}), "does not answer as SearXNG does"),
        (redirect("http://a.example/"), "the policy does not name the host a.example"),
    ],
)
def test_what_a_person_has_to_mend_is_no_failure(
    browser: Browser, reply: Reply, words: str
) -> None:
    """The bundle could do nothing about it."""
    with (
        serving(lambda _: reply) as server,
        pytest.raises(EnvironmentLacks, match=words.replace("(", r"\(")),
    ):
        browser.perform(browser.harness("search", {}, config=settings(server.url)), {"query": "q"})


def test_nobody_at_the_address(browser: Browser) -> None:
    """An address where no server listens is no failure of the bundle either."""
    with serving(lambda _: data(HITS)) as server:
        url = server.url
    with pytest.raises(
        EnvironmentLacks,
        match=r"Connection refused; start it, or fix search\.url in config\.yaml, then resume",
    ):
        browser.perform(browser.harness("search", {}, config=settings(url)), {"query": "q"})


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_search_that_did_not_work_this_time_is_a_failure(browser: Browser, status: int) -> None:
    """The bundle may try again."""
    with serving(lambda _: text("later", status=status)) as server:
        kind, message = failed(
            browser.perform(
                browser.harness("search", {}, config=settings(server.url)), {"query": "q"}
            )
        )
    assert (kind, message.endswith(f"answered {status}")) == ("search", True)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("q", "search: must be a mapping"),
        ({"query": "q", "page": 2}, "unknown key 'page'"),
        ({"query": " "}, "search.query: is empty"),
        ({"query": 5}, "not 5"),
        ({"query": "q", "limit": 0}, "search.limit: must be a whole number from 1 to 100"),
        ({"query": "q", "limit": True}, "search.limit: must be"),
        ({"query": "q", "timeout_s": 0}, "search.timeout_s: must be"),
    ],
)
def test_a_bad_body_is_a_failure(browser: Browser, body: object, words: str) -> None:
    """Before the provider is thought of, where that is possible."""
    config = settings("http://127.0.0.1:9")
    kind, message = failed(browser.perform(browser.harness("search", {}, config=config), body))
    assert (kind, words in message) == ("effect", True)


def test_the_config_says_what_to_search_with(store: Store) -> None:
    """The config has a section for search, its key is a secret, and an error has the dotted key."""
    store.config_path.write_text(
        "search: {use: searxng, url: 'http://localhost:8080', key: 'secret:SEARCH'}\n"
    )
    assert load(store).search == SearchSettings(
        use="searxng", url="http://localhost:8080", key="secret:SEARCH"
    )
    for text_of, words in (
        (
            "{use: searxng, url: 'http://a.example', key: clear}",
            "search.key: a credential does not belong here",
        ),
        ("{use: searxng, url: 'a.example'}", "search.url: the url begins with http:// or https://"),
        (
            "{use: searxng, url: 'http://u:p@a.example'}",
            "search.url: the url holds a user name or a password",
        ),
        ("{use: other, url: 'http://a.example'}", "search.use"),
        ("{use: searxng}", "search.url: is missing"),
        (
            "{use: searxng, uri: 'http://a.example', url: 'http://a.example'}",
            "search.uri: unknown key; did you mean 'url'?",
        ),
    ):
        store.config_path.write_text(f"search: {text_of}\n")
        with pytest.raises(UsageError) as caught:
            load(store)
        assert words in str(caught.value)


def test_a_search_may_be_repeated(browser: Browser) -> None:
    """After a crash it is; the engine finds the handler by its kind."""
    handler = handler_for("search")
    assert isinstance(handler, SearchHandler)
    assert handler.rule({"query": "q"}, browser.harness("search", {}).bundle) == "repeat"
