"""Which address is connected to, over what, and through whom."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from testbed.browsing import Browser, answered, failed
from testbed.webserver import Reply, Seen, certify, data, redirect, serving, text


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(tmp_path_factory.mktemp("tls"), "site.example", "other.example")


def test_the_checked_address_is_the_one_that_is_connected_to(browser: Browser) -> None:
    """A name server that says something else the second time is not asked a second time."""
    browser.addresses["site.example"] = [["127.0.0.1"], ["169.254.169.254"]]
    with serving(lambda seen: text(seen.headers["host"])) as server:
        harness = browser.harness("http", {"private": True})
        url = f"http://site.example:{server.port}/"
        assert (
            answered(browser.perform(harness, {"url": url}))["text"]
            == f"site.example:{server.port}"
        )
        assert browser.looked_up == ["site.example"]


def test_a_name_that_turns_private_is_refused_at_the_next_connection(browser: Browser) -> None:
    """An earlier public address of a name gives no right to its later private one."""
    browser.addresses["site.example"] = [["127.0.0.1"], ["10.0.0.1"]]
    with serving(lambda _: Reply(headers=[("Connection", "close")])) as server:
        url = f"http://site.example:{server.port}/"
        kind, message = failed(browser.perform(browser.harness("http", {}), {"url": url}))
        assert (kind, "site.example is at 127.0.0.1: this machine itself" in message) == (
            "refused-address",
            True,
        )
        kind, message = failed(browser.perform(browser.harness("http", {}), {"url": url}))
        assert "site.example is at 10.0.0.1: an address of a private network" in message
        assert server.connections == 0


def test_one_private_address_among_several_is_enough(browser: Browser) -> None:
    """A name with one private address is refused before any address is tried."""
    browser.addresses["site.example"] = [["93.184.216.34", "127.0.0.1"]]
    with serving(lambda _: text("x")) as server:
        assert (
            failed(
                browser.perform(
                    browser.harness("http", {}), {"url": f"http://site.example:{server.port}/"}
                )
            )[0]
            == "refused-address"
        )
        assert server.connections == 0


def test_addresses_are_tried_one_after_the_other(browser: Browser) -> None:
    """Addresses of a name are tried in order until one answers."""
    browser.addresses["site.example"] = [["127.0.0.2", "127.0.0.1"]]
    with serving(lambda _: text("x")) as server:
        assert (
            answered(
                browser.perform(
                    browser.harness("http", {"private": True}),
                    {"url": f"http://site.example:{server.port}/"},
                )
            )["text"]
            == "x"
        )


def test_tls_is_for_the_name_not_the_address(browser: Browser, certificate: Path) -> None:
    """The server gets the name in the TLS handshake, and its certificate is checked against that
    name.
    """
    browser.addresses = {"site.example": [["127.0.0.1"]], "wrong.example": [["127.0.0.1"]]}
    with serving(lambda seen: text(seen.headers["host"]), certificate=certificate) as server:
        harness = browser.harness("http", {"private": True}, {"SSL_CERT_FILE": str(certificate)})
        for _ in range(2):
            outcome = answered(
                browser.perform(harness, {"url": f"https://site.example:{server.port}/"})
            )
            assert outcome["text"] == f"site.example:{server.port}"
        assert (server.names, server.connections) == (["site.example"], 1)
        kind, message = failed(
            browser.perform(harness, {"url": f"https://wrong.example:{server.port}/"})
        )
        assert (kind, "the certificate of wrong.example is not accepted" in message) == (
            "tls",
            True,
        ), message


def test_a_certificate_that_nobody_vouches_for_is_refused(
    browser: Browser, certificate: Path
) -> None:
    """An unknown certificate is refused, and no setting allows it."""
    browser.addresses["site.example"] = [["127.0.0.1"]]
    with serving(lambda _: text("x"), certificate=certificate) as server:
        kind, message = failed(
            browser.perform(
                browser.harness("http", {"private": True}),
                {"url": f"https://site.example:{server.port}/"},
            )
        )
    assert (kind, "is not accepted" in message) == ("tls", True)


def test_a_server_that_speaks_no_tls(browser: Browser) -> None:
    """A failed handshake is a problem of kind tls, not of a broken answer."""
    with serving(lambda _: text("x")) as server:
        kind, message = failed(
            browser.perform(
                browser.harness("http", {"private": True}), {"url": f"https://{server.host}/"}
            )
        )
    assert (kind, "no TLS with 127.0.0.1" in message) == ("tls", True)


def test_a_silent_handshake_ends_in_time_and_when_killed(browser: Browser) -> None:
    """The time limit and a kill hold in the middle of it, too."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        harness = browser.harness("http", {"private": True})
        assert (
            failed(
                browser.perform(harness, {"url": f"https://127.0.0.1:{port}/", "timeout_s": 0.1})
            )[0]
            == "timeout"
        )
        with listener.accept()[0]:
            pass

        def kill() -> None:
            with listener.accept()[0] as silent:
                silent.recv(1)  # the handshake has begun
                harness.cancel.request()
                silent.recv(65536)

        killer = threading.Thread(target=kill)
        killer.start()
        outcome = browser.perform(harness, {"url": f"https://127.0.0.1:{port}/", "timeout_s": 60})
        killer.join()
    assert getattr(outcome, "word", outcome) == "killed"


def test_a_redirect_to_tls(browser: Browser, certificate: Path) -> None:
    """A redirect to TLS uses a connection of its own."""
    browser.addresses["site.example"] = [["127.0.0.1"]]
    with (
        serving(lambda _: text("safe"), certificate=certificate) as secure,
        serving(lambda _: redirect(f"https://site.example:{secure.port}/x")) as server,
    ):
        harness = browser.harness("http", {"private": True}, {"SSL_CERT_FILE": str(certificate)})
        outcome = answered(browser.perform(harness, {"url": server.url}))
    assert (outcome["text"], outcome["url"]) == ("safe", f"https://site.example:{secure.port}/x")


@contextmanager
def tunnelling(port: int, heard: list[bytes]) -> Iterator[int]:
    """A proxy that leads each tunnel to *port* of this machine, whatever it was asked for."""

    def pump(source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(65536):
            target.sendall(data)
        with suppress(OSError):  # the other side was first
            target.shutdown(socket.SHUT_WR)

    def work() -> None:
        try:
            client = listener.accept()[0]
        except OSError:  # no client connected
            return
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1)
        heard.append(head)
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=pump, args=(server, client))
            back.start()
            pump(client, server)
            back.join()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        worker = threading.Thread(target=work)
        worker.start()
        try:
            yield listener.getsockname()[1]
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            worker.join()


def test_a_proxy_of_the_caller_is_used_for_hosts_that_the_policy_names(
    browser: Browser, certificate: Path
) -> None:
    """The proxy looks up names by itself, so no address is checked here; it sees no secret of the
    tunnel's content.
    """
    heard: list[bytes] = []
    with (
        serving(lambda seen: data(dict(seen.headers)), certificate=certificate) as server,
        tunnelling(server.port, heard) as port,
    ):
        environment = {
            "SSL_CERT_FILE": str(certificate),
            "https_proxy": f"http://me:p%40ss@127.0.0.1:{port}",
        }
        kind, message = failed(
            browser.perform(
                browser.harness("http", {}, environment), {"url": "https://site.example/"}
            )
        )
        assert (kind, 'the policy has to name its hosts; add "site.example"' in message) == (
            "policy",
            True,
        )
        harness = browser.harness("http", {"hosts": ["site.example"]}, environment)
        outcome = answered(
            browser.perform(
                harness, {"url": "https://site.example/", "headers": {"Authorization": "mine"}}
            )
        )
        browser.clients.close()
    assert outcome["json"]["authorization"] == "mine"
    assert "proxy-authorization" not in outcome["json"]
    [head] = heard
    assert head.startswith(b"CONNECT site.example:443 HTTP/1.1\r\n")
    assert b"Basic " + base64.b64encode(b"me:p@ss") in head
    assert b"mine" not in head
    assert browser.looked_up == []


def test_this_machine_is_reached_without_a_proxy(browser: Browser) -> None:
    """Addresses that are not public are none of a proxy's business."""

    def script(seen: Seen) -> Reply:
        return text(seen.path)

    with serving(script) as server:
        harness = browser.harness("http", {"private": True}, {"http_proxy": "http://127.0.0.1:9"})
        assert answered(browser.perform(harness, {"url": f"{server.url}/x"}))["text"] == "/x"
