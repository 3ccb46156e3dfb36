"""Where a request is led, and what goes along."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from testbed.browsing import Browser, answered, failed
from testbed.webserver import Reply, Seen, data, redirect, serving
from uncaged_engine.settings.config import Config, SecretSource

SECRET = "s3cret-value/+="


def echo(seen: Seen) -> Reply:
    return data(
        {
            "method": seen.method,
            "path": seen.path,
            "headers": dict(seen.headers),
            "body": seen.body.decode(),
        }
    )


def leading(seen: Seen) -> Reply:
    """``/302?to`` redirects to what follows the question mark."""
    status, _, location = seen.path[1:].partition("?")
    return redirect(unquote(location), int(status)) if status.isdigit() else echo(seen)


@pytest.mark.parametrize(
    ("status", "method", "followed"),
    [
        *(
            (301, "GET", "GET"),
            (302, "GET", "GET"),
            (303, "GET", "GET"),
            (307, "GET", "GET"),
            (308, "GET", "GET"),
        ),
        *(
            (301, "POST", "GET"),
            (302, "POST", "GET"),
            (303, "POST", "GET"),
            (307, "POST", "POST"),
            (308, "POST", "POST"),
        ),
        *(
            (301, "PUT", "PUT"),
            (303, "PUT", "GET"),
            (303, "DELETE", "GET"),
            (302, "DELETE", "DELETE"),
            (307, "PATCH", "PATCH"),
        ),
    ],
)
def test_a_redirect_keeps_the_method_or_asks_for_a_page(
    browser: Browser, status: int, method: str, followed: str
) -> None:
    """A redirect follows the standard; a request that becomes a GET has no body and no headers
    about one.
    """
    with serving(leading) as server:
        harness = browser.harness("http", {"hosts": [server.host], "private": True})
        outcome = answered(
            browser.perform(
                harness,
                {"method": method, "url": f"{server.url}/{status}?/end?x=1", "text": "hello"},
            )
        )
    seen = outcome["json"]
    assert outcome["url"] == f"{server.url}/end?x=1"
    assert (seen["method"], seen["path"]) == (followed, "/end?x=1")
    kept = followed != "GET" or method == "GET"
    assert seen["body"] == ("hello" if kept else "")
    assert ("content-type" in seen["headers"]) is kept
    assert ("idempotency-key" in seen["headers"]) is (kept and method != "GET")


def test_a_bundle_may_want_the_redirect_itself(browser: Browser) -> None:
    """A redirect is the outcome with followRedirects false, and where it has no location."""
    with serving(leading) as server:
        harness = browser.harness("http", {"hosts": [server.host], "private": True})
        outcome = answered(
            browser.perform(harness, {"url": f"{server.url}/302?/end", "followRedirects": False})
        )
        assert (outcome["status"], outcome["headers"]["location"]) == (302, "/end")
    with serving(lambda _: Reply(status=302)) as server:
        harness = browser.harness("http", {"hosts": [server.host], "private": True})
        assert answered(browser.perform(harness, {"url": server.url}))["status"] == 302


def test_endless_redirects_end(browser: Browser) -> None:
    """Ten are followed; the eleventh is one too many."""

    def script(seen: Seen) -> Reply:
        left = int(seen.path[1:])
        return redirect(f"/{left - 1}") if left else echo(seen)

    with serving(script) as server:
        harness = browser.harness("http", {"hosts": [server.host], "private": True})
        assert answered(browser.perform(harness, {"url": f"{server.url}/10"}))["status"] == 200
        server.seen.clear()
        kind, message = failed(browser.perform(harness, {"url": f"{server.url}/99"}))
        assert (kind, "redirected more than 10 times" in message) == ("redirects", True)
        assert len(server.seen) == 11


@pytest.mark.parametrize(
    ("location", "kind", "words"),
    [
        (
            "http://169.254.169.254/latest/meta-data/",
            "refused-address",
            "where a cloud tells a machine about itself",
        ),
        (
            "http://[fd00:ec2::254]/",
            "refused-address",
            "where a cloud tells a machine about itself",
        ),
        (
            "http://[::ffff:169.254.169.254]/",
            "refused-address",
            "169.254.169.254 in another spelling",
        ),
        ("http://2852039166/", "refused-address", "an address in disguise"),
        ("http://0xa9fea9fe/", "refused-address", "an address in disguise"),
        ("http://0.0.0.0:{port}/", "refused-address", "no address of any machine"),
        ("http://metadata.example/", "refused-address", "metadata.example is at 169.254.169.254"),
        ("http://unknown.example/", "dns", "unknown.example is not known"),
        ("file:///etc/passwd", "redirects", "file: addresses are not requested"),
        ("http://u:p@127.0.0.1:{port}/", "redirects", "a user name or a password"),
        ("http://xn--a.example/", "redirects", "no internationalised name"),
        ("http://[1/", "redirects", "is no web address"),
    ],
)
def test_a_redirect_is_checked_like_a_request(
    browser: Browser, location: str, kind: str, words: str
) -> None:
    """A server cannot lead a bundle to where it could not have gone by itself; the message says how
    it got there.
    """
    browser.addresses["metadata.example"] = [["169.254.169.254"]]
    with serving(leading) as server:
        target = location.format(port=server.port)
        found, message = failed(
            browser.perform(
                browser.harness("http", {"private": True}), {"url": f"{server.url}/302?{target}"}
            )
        )
    assert (found, words in message) == (kind, True), message
    assert "redirected from http://127.0.0.1:" in message
    assert len(server.seen) == 1


def test_a_redirect_stays_within_the_policy(browser: Browser) -> None:
    """Another port of the same machine is another host."""
    with serving(echo) as other, serving(lambda _: redirect(other.url)) as server:
        harness = browser.harness("http", {"hosts": [server.host], "private": True})
        kind, message = failed(browser.perform(harness, {"url": server.url}))
        assert (kind, f'add "{other.host}" to "http"' in message) == ("policy", True)
        assert other.seen == []


def test_confidences_stay_with_their_origin(browser: Browser) -> None:
    """Authorization and cookies reach a further page of the same origin, and no other; other
    headers do.
    """
    headers = {"Authorization": "Bearer mine", "Cookie": "a=1", "X-Other": "y"}
    with serving(echo) as other, serving(leading) as server:
        harness = browser.harness("http", {"private": True})
        same = answered(
            browser.perform(harness, {"url": f"{server.url}/302?/end", "headers": headers})
        )["json"]["headers"]
        assert (same["authorization"], same["cookie"], same["x-other"]) == (
            "Bearer mine",
            "a=1",
            "y",
        )
        far = answered(
            browser.perform(harness, {"url": f"{server.url}/302?{other.url}", "headers": headers})
        )["json"]["headers"]
        assert "authorization" not in far
        assert "cookie" not in far
        assert far["x-other"] == "y"


def test_a_secret_goes_along_only_where_it_is_bound(browser: Browser) -> None:
    """A header that holds one is dropped on the way to another host; a body that holds one is not
    sent there.
    """
    config = Config(secrets={"KEY": SecretSource(env="MY_KEY")})
    with serving(echo) as other, serving(leading) as server:
        for bound, arrives in (([server.host], False), ([server.host, other.host], True)):
            policy = {"private": True, "secrets": {"KEY": bound}}
            harness = browser.harness("http", policy, {"MY_KEY": SECRET}, config)
            body = {"url": f"{server.url}/307?{other.url}", "headers": {"X-Key": "k secret:KEY"}}
            outcome = answered(browser.perform(harness, body))
            assert server.seen[-1].headers["x-key"] == f"k {SECRET}"
            assert other.seen[-1].headers.get("x-key") == (f"k {SECRET}" if arrives else None)
            assert outcome["json"]["headers"].get("x-key") == ("k secret:KEY" if arrives else None)
            count = len(other.seen)
            result = browser.perform(
                harness, {**body, "method": "POST", "headers": {}, "json": {"key": "secret:KEY"}}
            )
            assert server.seen[-1].json == {"key": SECRET}
            if arrives:
                assert other.seen[-1].json == {"key": SECRET}
            else:
                assert failed(result)[0] == "policy"
                assert len(other.seen) == count
