"""The http effect from body to outcome, against a real server."""

from __future__ import annotations

import base64
import gzip
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testbed.browsing import Browser, answered, failed
from testbed.roles import THREAD, EffectHarness
from testbed.tool_loops import Clock
from testbed.webserver import Reply, Seen, WebServer, data, raw, serving, text
from uncaged_effects.http import HttpHandler
from uncaged_engine.door.outcomes import Void
from uncaged_engine.effect_kinds import handler_for

Ask = Callable[..., Any]
KEYS_OF_AN_ANSWER = {"status", "headers", "url", "truncated"}


def echo(seen: Seen) -> Reply:
    return data(
        {
            "method": seen.method,
            "path": seen.path,
            "headers": dict(seen.headers),
            "body": seen.body.decode("latin-1"),
        }
    )


def harness_for(browser: Browser, server: WebServer, **policy: object) -> EffectHarness:
    return browser.harness("http", {"hosts": [server.host], "private": True, **policy})


@pytest.fixture
def server() -> Iterator[WebServer]:
    with serving(echo) as server:
        yield server


@pytest.fixture
def ask(browser: Browser, server: WebServer) -> Ask:
    """Send to the echoing server; returns what it saw."""
    harness = harness_for(browser, server)
    return lambda path="/", **body: answered(
        browser.perform(harness, {"url": server.url + path, **body})
    )["json"]


def test_an_answer_has_one_shape(browser: Browser, server: WebServer) -> None:
    """Status, headers with lower-case names, the final address, the body, and whether it is all of
    it.
    """
    outcome = answered(browser.perform(harness_for(browser, server), {"url": f"{server.url}/a"}))
    assert set(outcome) == KEYS_OF_AN_ANSWER | {"json"}
    assert (outcome["status"], outcome["url"], outcome["truncated"]) == (
        200,
        f"{server.url}/a",
        False,
    )
    assert outcome["headers"]["content-type"] == "application/json"


def test_a_request_says_what_it_was_told(ask: Ask) -> None:
    """Method, query beside the one that is there, and headers arrive; the rest is ours."""
    seen = ask(
        "/a?x=1",
        method="put",
        query={"q": "a&b", "n": [1, 2.5], "t": True},
        headers={"X-Mine": " ü ", "Accept": "text/plain"},
    )
    assert (seen["method"], seen["path"]) == ("PUT", "/a?x=1&q=a%26b&n=1&n=2.5&t=true")
    assert seen["headers"]["x-mine"] == "ü"
    assert seen["headers"]["accept"] == "text/plain"
    assert seen["headers"]["user-agent"].startswith("uncaged-workflow/")


@pytest.mark.parametrize(
    ("body", "kind", "sent"),
    [
        ({"json": {"a": ["ü", 1]}}, "application/json", '{"a":["ü",1]}'),
        ({"json": None}, "application/json", "null"),
        (
            {"form": {"a": "b c&", "n": [1, False]}},
            "application/x-www-form-urlencoded",
            "a=b+c%26&n=1&n=false",
        ),
        ({"text": "ü"}, "text/plain; charset=utf-8", "ü"),
        ({"bytes": base64.b64encode(b"\0\xff").decode()}, "application/octet-stream", "\0\xff"),
        ({"text": "<a/>", "headers": {"content-type": "text/xml"}}, "text/xml", "<a/>"),
    ],
)
def test_a_body_has_a_form_and_its_type(
    ask: Ask, body: dict[str, Any], kind: str, sent: str
) -> None:
    """JSON, a form, text or bytes; the type follows unless it is given."""
    seen = ask(method="POST", **body)
    assert seen["headers"]["content-type"] == kind
    assert seen["body"].encode("latin-1") == (
        sent.encode("latin-1") if "\xff" in sent else sent.encode()
    )
    assert seen["headers"]["content-length"] == str(len(seen["body"]))


def test_what_changes_something_carries_its_own_key(ask: Ask) -> None:
    """An unsafe request has the same key at every attempt, a safe one none; the bundle's own key
    has precedence.
    """
    assert ask(method="GET")["headers"].get("idempotency-key") is None
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert ask(method=method)["headers"]["idempotency-key"] == f"{THREAD}/7"
    assert (
        ask(method="POST", headers={"idempotency-key": "mine"})["headers"]["idempotency-key"]
        == "mine"
    )


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"method": "GET"}, "repeat"),
        ({}, "repeat"),
        ({"method": "head"}, "repeat"),
        ({"method": "PUT"}, "repeat"),
        ({"method": "DELETE"}, "repeat"),
        ({"method": "OPTIONS"}, "repeat"),
        ({"method": "POST"}, "ask"),
        ({"method": "patch"}, "ask"),
        ({"method": "POST", "idempotent": True}, "repeat"),
        ({"method": "POST", "idempotent": False}, "ask"),
        ({"method": "POST", "idempotent": "yes"}, "ask"),
        ("nonsense", "repeat"),
    ],
)
def test_what_may_have_happened_is_not_done_twice_unasked(
    browser: Browser, body: Any, rule: str
) -> None:
    """A request is repeated after a crash if twice is the same as once, by method or the bundle's
    word.
    """
    assert (
        HttpHandler(browser.clients).rule(
            body, harness_for(browser, WebServer(port=1, scheme="http")).bundle
        )
        == rule
    )
    assert isinstance(handler_for("http"), HttpHandler)


@pytest.mark.parametrize("status", [201, 204, 304, 400, 404, 418, 500, 503])
def test_a_status_is_an_outcome_not_a_failure(browser: Browser, status: int) -> None:
    """The bundle decides what it means."""
    with serving(
        lambda _: Reply(status=status, headers=[("Content-Type", "text/plain")])
    ) as server:
        outcome = answered(browser.perform(harness_for(browser, server), {"url": server.url}))
    assert (outcome["status"], outcome["text"]) == (status, "")


@pytest.mark.parametrize(
    ("kind", "body", "content"),
    [
        ("application/json", b'{"a": 1}', {"json": {"a": 1}}),
        ("application/problem+json; charset=utf-8", b"[1]", {"json": [1]}),
        ("application/json", b"not json", {"text": "not json"}),
        ("application/json", b'{"a": NaN}', {"text": '{"a": NaN}'}),
        ("application/json", b"[1e999]", {"text": "[1e999]"}),
        ("application/json", b'["\\ud800"]', {"text": '["\\ud800"]'}),
        ("application/json", b"[" * 5000 + b"]" * 5000, {"text": "[" * 5000 + "]" * 5000}),
        ("application/json", b"[" * 60 + b"]" * 60, {"text": "[" * 60 + "]" * 60}),
        ("application/json", b"9" * 5000, {"text": "9" * 5000}),
        ("text/plain", "ü".encode(), {"text": "ü"}),
        ("text/plain; charset=latin-1", "ü".encode("latin-1"), {"text": "ü"}),
        ("text/plain; charset=utf-16", "ü".encode("utf-16"), {"text": "ü"}),
        ("text/plain; charset=nonsense", "ü".encode(), {"text": "ü"}),
        ("text/plain; charset=idna", b"x", {"text": "x"}),
        ("text/plain; charset=hex", b"00", {"base64": base64.b64encode(b"00").decode()}),
        ("text/plain; charset=utf-7", b"+2AA-", {"text": "?"}),
        ("text/plain", b"a\xffb", {"text": "a\ufffdb"}),
        ("text/plain", b"\xef\xbb\xbfx", {"text": "x"}),
        ("application/xml", b"<a/>", {"text": "<a/>"}),
        ("image/png", b"\x89PNG\0", {"base64": base64.b64encode(b"\x89PNG\0").decode()}),
        ("application/octet-stream", b"plain", {"text": "plain"}),
        ("", b"plain", {"text": "plain"}),
        ("", b"\0\1", {"base64": "AAE="}),
    ],
)
def test_a_body_is_json_text_or_base64(
    browser: Browser, kind: str, body: bytes, content: dict[str, Any]
) -> None:
    """Any body of a server has a form that the journal can hold, by its type and its bytes."""
    with serving(
        lambda _: Reply(headers=[("Content-Type", kind)] if kind else [], body=body)
    ) as server:
        outcome = answered(browser.perform(harness_for(browser, server), {"url": server.url}))
    assert {key: value for key, value in outcome.items() if key not in KEYS_OF_AN_ANSWER} == content


def test_headers_that_stand_twice_are_joined(browser: Browser) -> None:
    """Under one lower-case name."""
    with serving(
        lambda _: Reply(headers=[("X-A", "1"), ("x-a", "2"), ("Set-Cookie", "ü=1")])
    ) as server:
        headers = answered(browser.perform(harness_for(browser, server), {"url": server.url}))[
            "headers"
        ]
    assert headers["x-a"] == "1, 2"
    assert headers["set-cookie"] == "ü=1"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "http: must be a mapping"),
        ({}, "http.url: is missing"),
        ({"url": 5}, "not 5"),
        (
            {"url": "https://a.example", "verify": False},
            "unknown key 'verify'; known here: bytes, ",
        ),
        (
            {"url": "https://a.example", "method": "CONNECT"},
            "http.method: 'CONNECT' is not one of GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE",
        ),
        (
            {"url": "https://a.example", "method": "GET / HTTP/1.1\r\nX: y"},
            "is not one of GET, HEAD",
        ),
        (
            {"url": "https://a.example", "json": 1, "text": "x"},
            "json and text cannot both be the body",
        ),
        ({"url": "https://a.example", "text": 5}, "http.text: must be text, not 5"),
        ({"url": "https://a.example", "bytes": "no!"}, "http.bytes: must be Base64"),
        ({"url": "https://a.example", "form": [1]}, "http.form: must be a mapping"),
        ({"url": "https://a.example", "query": {"a": {}}}, "http.query.a: must be a text"),
        ({"url": "https://a.example", "headers": []}, "http.headers: must be a mapping"),
        ({"url": "https://a.example", "headers": {"X": 5}}, "http.headers.X: must be text, not 5"),
        ({"url": "https://a.example", "headers": {"X\r\nY": "z"}}, "is no name of a header"),
        ({"url": "https://a.example", "headers": {"X:": "z"}}, "is no name of a header"),
        (
            {"url": "https://a.example", "headers": {"Host": "b.example"}},
            "Host belongs to the connection",
        ),
        (
            {"url": "https://a.example", "headers": {"content-LENGTH": "5"}},
            "belongs to the connection",
        ),
        (
            {"url": "https://a.example", "headers": {"Transfer-Encoding": "chunked"}},
            "belongs to the connection",
        ),
        (
            {"url": "https://a.example", "headers": {"Proxy-Authorization": "x"}},
            "belongs to the connection",
        ),
        (
            {"url": "https://a.example", "timeout_s": 0},
            "http.timeout_s: must be a positive number, not 0",
        ),
        ({"url": "https://a.example", "timeout_s": "5"}, "not '5'"),
        (
            {"url": "https://a.example", "followRedirects": "no"},
            "http.followRedirects: must be True or False",
        ),
        ({"url": "https://a.example", "idempotent": 1}, "http.idempotent: must be True or False"),
        ({"url": "file:///etc/passwd"}, "file: addresses are not requested"),
        ({"url": "https://u:p@a.example/"}, "a user name or a password"),
    ],
)
def test_a_bad_body_is_a_failure(browser: Browser, body: object, words: str) -> None:
    """The bundle's author reads it; nothing was looked up or sent."""
    kind, message = failed(browser.perform(browser.harness("http", {}), body))
    assert kind == "effect"
    assert words in message
    assert browser.looked_up == []


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "a\x7fb"])
def test_a_header_cannot_smuggle_in_another(
    browser: Browser, server: WebServer, value: str
) -> None:
    """Line breaks and other control characters are refused, and the value is not repeated."""
    kind, message = failed(
        browser.perform(
            harness_for(browser, server), {"url": server.url, "headers": {"X-Mine": value}}
        )
    )
    assert (kind, "the value of X-Mine holds a line break" in message) == ("effect", True)
    assert server.seen == []


def test_a_header_holds_only_what_headers_can(browser: Browser, server: WebServer) -> None:
    """Said in advance, instead of something else being sent."""
    kind, message = failed(
        browser.perform(
            harness_for(browser, server), {"url": server.url, "headers": {"X-Mine": "日"}}
        )
    )
    assert (kind, "holds characters that no header can" in message) == ("effect", True)


def test_connections_are_used_again(browser: Browser, server: WebServer) -> None:
    """A connection is reused by the same kind of effect under the same policy, and by no other."""
    for _ in range(3):
        answered(browser.perform(harness_for(browser, server), {"url": server.url}))
    assert server.connections == 1
    answered(browser.perform(harness_for(browser, server, maxBytes=1000), {"url": server.url}))
    assert server.connections == 1
    answered(
        browser.perform(
            harness_for(browser, server, secrets={"KEY": ["a.example"]}), {"url": server.url}
        )
    )
    assert server.connections == 2


def test_a_connection_that_the_server_closed_is_not_used(browser: Browser) -> None:
    """A new connection is made, and the bundle gets its answer."""
    # closes without saying so
    with serving(lambda _: raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")) as server:
        for _ in range(3):
            assert (
                answered(browser.perform(harness_for(browser, server), {"url": server.url}))["text"]
                == "x"
            )
        assert server.connections == 3


@pytest.mark.parametrize(("method", "sent"), [("GET", 3), ("PUT", 3), ("POST", 2)])
def test_a_connection_that_is_given_up_under_a_request(
    browser: Browser, method: str, sent: int
) -> None:
    """A repeatable request is sent again over a new connection; any other one is not."""
    with serving(lambda seen: raw(b"") if len(tired.seen) == 2 else echo(seen)) as tired:
        harness = harness_for(browser, tired)
        answered(browser.perform(harness, {"url": tired.url}))
        outcome = browser.perform(harness, {"url": tired.url, "method": method})
        if sent == 3:
            assert answered(outcome)["json"]["method"] == method
        else:
            assert failed(outcome)[0] == "connect"
        assert len(tired.seen) == sent


def test_more_than_the_limit_is_a_failure(browser: Browser) -> None:
    """A page that was cut never passes for a whole one; as much as the limit is whole."""
    with serving(lambda seen: text("x" * int(seen.path[1:]))) as server:
        harness = harness_for(browser, server, maxBytes=1000)
        assert (
            len(answered(browser.perform(harness, {"url": f"{server.url}/1000"}))["text"]) == 1000
        )
        kind, message = failed(browser.perform(harness, {"url": f"{server.url}/1001"}))
    assert kind == "too-large"
    assert "larger than 1000 bytes; maxBytes in the policy of 'http' sets the limit" in message


def test_what_an_error_says_is_cut_instead(browser: Browser) -> None:
    """The status is the news, and the beginning of the body explains it."""
    with serving(lambda _: data(["x" * 2000], status=500)) as server:
        outcome = answered(
            browser.perform(harness_for(browser, server, maxBytes=1000), {"url": server.url})
        )
    assert (outcome["status"], outcome["truncated"], len(outcome["text"])) == (500, True, 1000)
    with serving(lambda _: data(1234567890, status=500)) as server:
        outcome = answered(
            browser.perform(harness_for(browser, server, maxBytes=5), {"url": server.url})
        )
    assert (outcome["text"], "json" in outcome) == ("12345", False)  # half a number is no number


@pytest.mark.slow
def test_a_bomb_does_not_go_off(browser: Browser) -> None:
    """A hundred kilobytes that would be a hundred megabytes; and one that never ends."""
    bomb = gzip.compress(b"\0" * (100 << 20))

    def script(seen: Seen) -> Reply:
        packed = [("Content-Encoding", "gzip"), ("Content-Type", "text/plain")]
        if seen.path == "/bomb":
            return Reply(headers=packed, body=bomb)
        return Reply(headers=packed[1:], body=iter(lambda: b"x" * 65_536, b""))

    with serving(script) as server:
        for path in ("/bomb", "/endless"):
            assert (
                failed(browser.perform(harness_for(browser, server), {"url": server.url + path}))[0]
                == "too-large"
            )


def test_a_packed_answer_is_unpacked(browser: Browser) -> None:
    """A body in an encoding that the request accepts is decompressed."""
    packed = Reply(
        headers=[("Content-Encoding", "gzip"), ("Content-Type", "application/json")],
        body=gzip.compress(b'{"a":1}'),
    )
    with serving(lambda _: packed) as server:
        assert answered(browser.perform(harness_for(browser, server), {"url": server.url}))[
            "json"
        ] == {"a": 1}
        assert server.seen[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    ("pieces", "kind", "words"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"], "body", "broke off"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal"], "body", "broke off"),
        (
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n"],
            "body",
            "broke off",
        ),
        (
            [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nplain"],
            "body",
            "is not valid gzip",
        ),
        ([b""], "connect", "gave no answer"),
        ([b"nonsense\r\n\r\n"], "connect", "gave no answer"),
        ([b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000], "connect", "gave no answer"),
        (
            [b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"],
            "connect",
            "gave no answer",
        ),
        (
            [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
            "connect",
            "gave no answer",
        ),
    ],
)
def test_a_broken_answer_is_a_failure(
    browser: Browser, pieces: list[bytes], kind: str, words: str
) -> None:
    """A broken answer is a failure and never half an outcome."""
    with serving(lambda _: raw(*pieces)) as server:
        found, message = failed(browser.perform(harness_for(browser, server), {"url": server.url}))
    assert (found, words in message) == (kind, True), message


def test_interim_answers_are_passed_over(browser: Browser) -> None:
    """The last one counts."""
    early = (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    )
    with serving(lambda _: raw(early)) as server:
        assert (
            answered(browser.perform(harness_for(browser, server), {"url": server.url}))["text"]
            == "ok"
        )


def test_nobody_there(browser: Browser) -> None:
    """A name that is not known and a port without a server are failures of different kinds."""
    with serving(echo) as server:
        gone = server.host
    harness = browser.harness("http", {"private": True})
    kind, message = failed(browser.perform(harness, {"url": f"http://{gone}/"}))
    assert (kind, "cannot be connected to: Connection refused" in message) == ("connect", True)
    kind, message = failed(browser.perform(harness, {"url": "http://nowhere.example/"}))
    assert kind == "dns"
    assert (
        message
        == "http: GET http://nowhere.example/: the name nowhere.example is not known (Name or service not known)"
    )


def dripping(ended: threading.Event) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while not ended.wait(0.02):
        yield b"X: y\r\n"


@pytest.mark.parametrize("stage", ["silent", "head", "body"])
def test_a_slow_server_cannot_outwait_the_limit(browser: Browser, stage: str) -> None:
    """A request has one time limit in all: a byte now and then does not prolong it."""

    def script(_: Seen) -> Reply:
        if stage == "silent":
            slow.ended.wait()
            return raw(b"")
        if stage == "head":
            return Reply(body=dripping(slow.ended), raw=True)
        return Reply(body=iter(lambda: b"" if slow.ended.wait(0.02) else b"x", b""))

    with serving(script) as slow, Clock() as clock:
        kind, message = failed(
            browser.perform(harness_for(browser, slow), {"url": slow.url, "timeout_s": 0.2})
        )
    assert (kind, "the time for the request was over" in message) == ("timeout", True)
    assert 0.2 <= clock.seconds < 60


def test_the_policy_has_the_last_word_about_time(browser: Browser) -> None:
    """A bundle may ask for less, not for more."""
    with serving(lambda _: (slow.ended.wait(), raw(b""))[1]) as slow, Clock() as clock:
        kind, _ = failed(
            browser.perform(
                harness_for(browser, slow, timeout_s=0.1), {"url": slow.url, "timeout_s": 600}
            )
        )
    assert kind == "timeout"
    assert clock.seconds < 60


@pytest.mark.parametrize("stage", ["before", "silent", "body", "lookup"])
def test_a_kill_ends_it_at_once(browser: Browser, stage: str) -> None:
    """Wherever it is: the bundle sees nothing of it, and a cut answer never passes for a whole
    one.
    """
    reached = threading.Event()

    def script(_: Seen) -> Reply:
        def pieces() -> Iterator[bytes]:
            yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nbeginning"
            reached.set()
            slow.ended.wait()

        if stage == "body":
            return Reply(body=pieces(), raw=True)
        reached.set()
        slow.ended.wait()
        return raw(b"")

    with serving(script) as slow, Clock() as clock:
        harness = browser.harness("http", {"private": True})
        if stage == "lookup":
            browser.waits = (reached, slow.ended)

        def kill() -> None:
            reached.wait()
            harness.cancel.request()

        killer = threading.Thread(target=kill)
        killer.start()
        if stage == "before":
            reached.set()
            killer.join()
        url = slow.url if stage != "lookup" else "http://slow.example/"
        outcome = browser.perform(harness, {"url": url, "timeout_s": 600})
        killer.join()
    assert isinstance(outcome, Void)
    assert outcome.word == "killed"
    assert clock.seconds < 60
