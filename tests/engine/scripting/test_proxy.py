"""The proxy for scripts, spoken to over real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from testbed.webserver import Seen, serving, text
from uncaged_engine.scripting.proxy import HEAD_BYTES, TIMEOUT_S, Denied, Proxy, check_address
from uncaged_engine.web.rules import read_patterns


@contextmanager
def proxy(*hosts: str) -> Iterator[tuple[int, list[str]]]:
    """A running proxy's port, and what it refused."""
    refused: list[str] = []
    with Proxy(hosts, read_patterns(hosts), refused) as running:
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        running.serve(listening)
        yield port, refused


def ask(port: int, data: bytes) -> bytes:
    """Send bytes and read to the end."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(data)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


def page(seen: Seen) -> object:
    return text(f"{seen.method} {seen.path} {sorted(seen.headers)} {seen.body!r}")


def test_a_request_is_passed_on_as_one_for_the_server() -> None:
    """Without what was meant for the proxy, for one request only, body included."""
    with serving(page) as server, proxy(f"127.0.0.1:{server.port}") as (port, refused):  # type: ignore[arg-type]  # a page is a reply
        head = f"POST http://127.0.0.1:{server.port}/a?b HTTP/1.1\r\nHost: liar\r\nProxy-Authorization: x\r\nContent-Length: 2\r\n\r\nhi"
        answer = ask(port, head.encode())
    assert answer.endswith(b"POST /a?b ['connection', 'content-length', 'host'] b'hi'")
    assert refused == []


@pytest.mark.parametrize(
    ("request_line", "words"),
    [
        (b"GET http://other.example/ HTTP/1.1", "the host 'other.example' is not among the policy's network"),
        (b"CONNECT other.example:443 HTTP/1.1", "the host 'other.example' is not among the policy's network"),
        (b"CONNECT api.example.com:22 HTTP/1.1", "the host 'api.example.com:22' is not among"),
        (b"CONNECT nonsense HTTP/1.1", "'nonsense' is no host and port"),
        (b"CONNECT 0x7f.1:443 HTTP/1.1", "an address in disguise"),
        (b"GET http://user:pw@api.example.com/ HTTP/1.1", "user name or a password"),
        (b"GET /plain HTTP/1.1", "it has no scheme"),
        (b"GET file:///etc/passwd HTTP/1.1", "file: addresses are not requested"),
    ],
)
def test_what_is_not_declared_is_refused_in_words(request_line: bytes, words: str) -> None:
    """The script gets a 403 with the sentence, and so does its result."""
    with proxy("api.example.com") as (port, refused):
        answer = ask(port, request_line + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert words.encode() in answer
    assert words in refused[0]


@pytest.mark.parametrize("text_address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "240.0.0.1", "224.0.0.1"])
def test_a_name_never_leads_inside(text_address: str) -> None:
    """A declared name that resolves to an address that is not public is refused; an address that is declared itself is not."""
    with pytest.raises(Denied, match="a policy has to name such an address itself"):
        check_address("api.example.com", text_address)
    check_address(text_address, text_address)
    check_address("api.example.com", "93.184.215.14")


def test_garbage_does_no_harm() -> None:
    """Endless heads, silence and early goodbyes leave a proxy that still answers."""
    with proxy("api.example.com") as (port, _):
        with pytest.raises(ConnectionError):
            ask(port, b"x" * (HEAD_BYTES * 20))
        socket.create_connection(("127.0.0.1", port)).close()
        assert ask(port, b"GET http://a.example/ HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403")


def test_leaving_ends_open_connections() -> None:
    """A tunnel that nobody closes does not keep the run."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"127.0.0.1:{server.getsockname()[1]}"
        with proxy(host) as (port, _):
            client = socket.create_connection(("127.0.0.1", port), 10)
            client.sendall(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
            other, _ = server.accept()
            left_s = time.monotonic()
        assert time.monotonic() - left_s < TIMEOUT_S / 2  # it did not wait until the tunnel had been silent for too long
        with client, other:
            assert client.recv(10) == b""
            assert other.recv(10) == b""
