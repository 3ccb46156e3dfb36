"""Secrets reach the hosts that they are bound to, and nothing that is written down."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from testbed.browsing import Browser, answered, failed
from testbed.roles import EffectHarness
from testbed.webserver import Reply, Seen, WebServer, data, serving, text
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.settings.config import Config, SecretSource

SECRET = 's3cret "val/ue+=ü'
CONFIG = Config(
    secrets={
        "KEY": SecretSource(env="MY_KEY"),
        "OTHER": SecretSource(env="MY_OTHER"),
        "ABSENT": SecretSource(env="NO_SUCH"),
    }
)
ENVIRONMENT = {"MY_KEY": SECRET, "MY_OTHER": "0ther-secret"}


def echo(seen: Seen) -> Reply:
    return data({"path": seen.path, "headers": dict(seen.headers), "body": seen.body.decode()})


def harness_for(
    browser: Browser, server: WebServer, *, bound: list[str] | None = None
) -> EffectHarness:
    hosts = [server.host] if bound is None else bound
    policy = {"private": True, "secrets": {"KEY": hosts, "OTHER": hosts, "ABSENT": hosts}}
    return browser.harness("http", policy, ENVIRONMENT, CONFIG)


def test_secrets_are_put_in_and_taken_out_again(browser: Browser) -> None:
    """Inside a header, as a whole value elsewhere; what the server sends back of them is their
    name, in every spelling.
    """
    with serving(echo) as server:
        harness = harness_for(browser, server)
        body = {
            "url": server.url,
            "method": "POST",
            "query": {"key": "secret:KEY"},
            "headers": {"Authorization": "Bearer secret:OTHER"},
            "json": {"a": ["secret:KEY", "not secret:KEY", 1]},
        }
        outcome = answered(browser.perform(harness, body))
        [seen] = server.seen
    assert seen.headers["authorization"] == "Bearer 0ther-secret"
    assert seen.path == "/?key=s3cret+%22val%2Fue%2B%3D%C3%BC"
    assert seen.json == {"a": [SECRET, "not secret:KEY", 1]}
    assert outcome["url"] == f"{server.url}/?key=secret:KEY"
    assert outcome["json"]["headers"]["authorization"] == "Bearer secret:OTHER"
    assert outcome["json"]["path"] == "/?key=secret:KEY"
    assert outcome["json"]["body"] == '{"a":["secret:KEY","not secret:KEY",1]}'


@pytest.mark.parametrize(
    "reply",
    [
        text(f"you said {SECRET}!"),
        data({SECRET: [f"x{SECRET}"]}),
        Reply(headers=[("X-Echo", "0ther-secret")], body=b"\0\1 0ther-secret \xff"),
        Reply(status=500, headers=[("Content-Type", "text/plain")], body=SECRET.encode()),
    ],
)
def test_a_secret_that_comes_back_is_not_written_down(browser: Browser, reply: Reply) -> None:
    """Text, JSON with its keys, headers, even bytes; also one that this request did not use."""
    with serving(lambda _: reply) as server:
        outcome = browser.perform(harness_for(browser, server), {"url": server.url})
    found = answered(outcome)
    said = repr(found) + repr(base64.b64decode(found.get("base64", "")))
    assert "s3cret" not in said
    assert "0ther-secret" not in said
    assert "secret:" in said


def test_an_error_holds_no_secret(browser: Browser) -> None:
    """Nor does the address that it names."""
    with serving(echo) as server:
        gone = server
    kind, message = failed(
        browser.perform(
            harness_for(browser, gone),
            {"url": f"{gone.url}/s3cret%20%22val/ue%2B%3D%C3%BC", "query": {"k": "secret:KEY"}},
        )
    )
    assert kind == "connect"
    assert "s3cret" not in message
    assert "/secret:KEY" in message


@pytest.mark.parametrize(
    "place",
    [
        {"headers": {"X": "a secret:KEY"}},
        {"query": {"k": "secret:KEY"}},
        {"json": [{"k": "secret:KEY"}]},
        {"form": {"k": "secret:KEY"}},
    ],
)
def test_a_secret_goes_nowhere_else(browser: Browser, place: dict[str, Any]) -> None:
    """Towards a host that it is not bound to nothing is sent at all."""
    with serving(echo) as server:
        method = "POST" if {"json", "form"} & set(place) else "GET"
        kind, message = failed(
            browser.perform(
                harness_for(browser, server, bound=["api.example"]),
                {"url": server.url, "method": method, **place},
            )
        )
        assert (kind, "does not bind secret:KEY to http://127.0.0.1" in message) == (
            "policy",
            True,
        ), message
        assert server.seen == []


def test_a_secret_that_the_policy_does_not_name_is_refused(browser: Browser) -> None:
    """A refusal has the line to add to the policy; inside other text the words are only text."""
    with serving(echo) as server:
        harness = harness_for(browser, server)
        kind, message = failed(
            browser.perform(harness, {"url": server.url, "headers": {"X": "secret:MINE"}})
        )
        assert (kind, f'add "secrets": {{"MINE": ["{server.host}"]}} to "http"' in message) == (
            "policy",
            True,
        )
        assert (
            answered(
                browser.perform(
                    harness, {"url": server.url, "query": {"q": "the secret:MINE of it"}}
                )
            )["status"]
            == 200
        )


def test_a_secret_without_a_value_is_what_the_machine_lacks(browser: Browser) -> None:
    """The thread is paused; the bundle never hears of it."""
    with (
        serving(echo) as server,
        pytest.raises(
            EnvironmentLacks,
            match="secret:ABSENT comes from the variable NO_SUCH, which is not set",
        ),
    ):
        browser.perform(
            harness_for(browser, server), {"url": server.url, "headers": {"X": "secret:ABSENT"}}
        )


def test_a_secret_with_a_line_break_is_no_header(browser: Browser, tmp_path: Path) -> None:
    """A secret cannot smuggle in another header, and the message does not show it."""
    path = tmp_path / "key"
    path.write_text("first\nsecond")
    config = Config(secrets={"KEY": SecretSource(file=path)})
    with serving(echo) as server:
        harness = browser.harness(
            "http", {"private": True, "secrets": {"KEY": [server.host]}}, {}, config
        )
        kind, message = failed(
            browser.perform(harness, {"url": server.url, "headers": {"X": "secret:KEY"}})
        )
    assert kind == "effect"
    assert "first" not in message
