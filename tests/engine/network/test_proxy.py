"""The proxy for scripts, spoken to over real sockets."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from testbed.webserver import Seen, serving, text
from uncaged_engine.network import proxy as proxy_module
from uncaged_engine.network.proxy import HEAD_BYTES, TIMEOUT_S, Proxy
from uncaged_engine.network.rules import HostRules, read_patterns


@contextmanager
def proxy(*hosts: str, private: bool = False) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """A running proxy's port, and what it refused."""
    refused: list[tuple[str, str]] = []
    with Proxy(
        HostRules(kind="script", hosts=read_patterns(hosts), private=private), refused
    ) as running:
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
    """The server gets one request with its body, without the headers for the proxy."""
    with (
        serving(page) as server,  # type: ignore[arg-type]
        proxy(f"127.0.0.1:{server.port}", private=True) as (port, refused),
    ):
        head = f"POST http://127.0.0.1:{server.port}/a?b HTTP/1.1\r\nHost: liar\r\nProxy-Authorization: x\r\nContent-Length: 2\r\n\r\nhi"
        answer = ask(port, head.encode())
    assert answer.endswith(b"POST /a?b ['connection', 'content-length', 'host'] b'hi'")
    assert refused == []


@pytest.mark.parametrize(
    ("request_line", "words"),
    [
        (b"GET http://other.example/ HTTP/1.1", "the policy does not name the host other.example;"),
        (b"CONNECT other.example:443 HTTP/1.1", "the policy does not name the host other.example;"),
        (
            b"CONNECT api.example.com:22 HTTP/1.1",
            "the policy does not name the host api.example.com:22;",
        ),
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
    assert words in refused[0][1]


@pytest.mark.parametrize(
    "head",
    [
        "G\nET {url} HTTP/1.1",
        "GET {url} HTTP/1.1\nX: y",
        "GET / HTTP/1.1\nHost: inside\n\nGET {url} HTTP/1.1",
        "GET {url} HTTP/1.1\r\nX: y\nGET /admin HTTP/1.1",
        "GET {url} HTTP/1.1\r\nX: y\rGET /admin HTTP/1.1",
        "GET {url} HTTP/1.1\r\nX: y\0z",
        "GET {url} HTTP/1.1\r\nX: y\r\n folded",
        "GET {url} HTTP/1.1\r\nContent-Length : 5",
        "GET {url} HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        "GET {url} HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6",
        "GET {url} HTTP/0.9",
        "GET {url}",
    ],
)
def test_a_head_that_hides_a_second_request_reaches_no_server(head: str) -> None:
    """A bare line feed in method or headers, a folded line, two lengths: another reader would see
    another request, so it is refused.
    """
    asked: list[str] = []

    def note(seen: Seen) -> object:
        asked.append(seen.path)
        return text("served")

    with (
        serving(note) as server,  # type: ignore[arg-type]
        proxy(f"127.0.0.1:{server.port}", private=True) as (port, refused),
    ):
        url = f"http://127.0.0.1:{server.port}/"
        answer = ask(port, head.format(url=url).encode() + b"\r\n\r\n")
        control = ask(port, f"GET {url}control HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert refused
    assert control.endswith(b"served")
    assert asked == ["/control"]


class Recorder:
    """A server that replies as soon as bytes arrive, and keeps all that it is sent."""

    def __init__(self, listener: socket.socket) -> None:
        self.host = f"127.0.0.1:{listener.getsockname()[1]}"
        self.received = b""
        self._listener = listener
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection, suppress(OSError):  # the proxy may close before it has read all
            self.received += connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                self.received += chunk

    def close(self) -> None:
        """Wait until the connection has ended; one of our own ends the wait if there was none."""
        if not self.received:
            socket.create_connection(self._listener.getsockname()).close()
        self._thread.join()


@contextmanager
def recorded(head: str, rest: bytes = b"") -> Iterator[tuple[Recorder, bytes]]:
    """The bytes that a server gets of a request through the proxy, and the reply to the client;
    ``{host}`` in the head is the server.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Recorder(listener)
        with proxy(server.host, private=True) as (port, _):
            reply = ask(port, head.format(host=server.host).encode() + b"\r\n\r\n" + rest)
        server.close()
        yield server, reply


ADMIN = b"GET /admin HTTP/1.1\r\nHost: inside\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "body", "sent"),
    [
        ("GET http://{host}/ HTTP/1.1", b"", b""),
        ("POST http://{host}/ HTTP/1.1\r\nContent-Length: 2", b"hi", b"hi"),
        ("POST http://{host}/ HTTP/1.1\r\nContent-Length: 2, 2", b"hi", b"hi"),
        (
            "POST http://{host}/ HTTP/1.1\r\nTransfer-Encoding: chunked",
            b"2;x=y\r\nhi\r\n0\r\nContent-Length: 9\r\n\r\n",
            b"2\r\nhi\r\n0\r\n\r\n",
        ),
        (
            "POST http://{host}/ HTTP/1.1\r\nConnection: content-length\r\nContent-Length: 2",
            b"hi",
            b"hi",
        ),
    ],
)
def test_a_second_request_behind_the_first_reaches_no_server(
    head: str, body: bytes, sent: bytes
) -> None:
    """A pipelined request is dropped; the first one arrives with its body, whose chunks are written
    anew without extensions and trailers.
    """
    with recorded(head, body + ADMIN) as (server, reply):
        assert reply.endswith(b"ok")
        start, _, rest = server.received.partition(b"\r\n\r\n")
        assert start.split(b"\r\n")[0] in (b"GET / HTTP/1.1", b"POST / HTTP/1.1")
        assert b"Host: " + server.host.encode() in start
        assert rest == sent
        assert start.count(b"Content-Length: 2\r\n") == head.count("Content-Length: 2")


@pytest.mark.parametrize(
    "chunks", [b"0x2\r\nhi\r\n", b"+2\r\nhi\r\n", b"2\nhi\n0\n\n", b"2\r\nhi!!\r\n", b"zz\r\n"]
)
def test_a_malformed_chunk_ends_the_connection(chunks: bytes) -> None:
    """Bytes after a chunk that is malformed reach no server."""
    head = "POST http://{host}/ HTTP/1.1\r\nTransfer-Encoding: chunked"
    with recorded(head, chunks + ADMIN) as (server, _):
        assert server.received.startswith(b"POST / HTTP/1.1\r\n")
        assert b"admin" not in server.received


@pytest.mark.parametrize(
    ("header", "gone"),
    [
        ("Host: inside", b"inside"),
        ("Connection: upgrade\r\nUpgrade: websocket", b"pgrade"),
        ("Connection: X-Secret\r\nX-Secret: 1", b"X-Secret"),
        ("Proxy-Authorization: Basic x", b"Basic"),
        ("Keep-Alive: timeout=9", b"timeout"),
        ("TE: trailers", b"TE:"),
    ],
)
def test_headers_for_the_proxy_end_there(header: str, gone: bytes) -> None:
    """A header of one hop is not passed on, and Host is the address's; any other header is."""
    with recorded(f"GET http://{{host}}/ HTTP/1.1\r\n{header}\r\nX-Kept: 1") as (server, reply):
        assert reply.endswith(b"ok")
        assert gone not in server.received
        assert b"X-Kept: 1\r\n" in server.received
        assert b"Connection: close\r\n" in server.received


@pytest.mark.parametrize(
    "head",
    [
        "POST {url} HTTP/1.1\r\nTransfer-Encoding: xchunked",
        "POST {url} HTTP/1.1\r\nTransfer-Encoding: gzip, chunked",
        "POST {url} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "POST {url} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer_Encoding : x",
        "POST {url} HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
        "POST {url} HTTP/1.1\r\nContent-Length: +5",
        "POST {url} HTTP/1.1\r\nContent-Length: 0x5",
        "POST {url} HTTP/1.1\r\nContent-Length: -1",
        "POST {url} HTTP/1.1\r\nContent-Length: 5, 6",
        "POST {url} HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5",
        "GET {url} HTTP/1.1\r\nHost: a\r\nHost: b",
        "GET {url} HTTP/1.1\r\nX: y\x01",
        "GET {url} HTTP/1.1\r\nX: y\x7f",
        "GET {url} HTTP/1.1\r\n: y",
        "GET {url} HTTP/2.0",
        "GET  {url} HTTP/1.1",
        "GET\t{url} HTTP/1.1",
        "\r\nGET {url} HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET //{host}/ HTTP/1.1",
        "GET http://{host}@other.example/ HTTP/1.1",
        "GET http://other.example\\@{host}/ HTTP/1.1",
        "CONNECT user@{host} HTTP/1.1",
        "CONNECT {host}/ HTTP/1.1",
        "CONNECT {url} HTTP/1.1",
        "CONNECT {host} HTTP/1.1\r\nContent-Length: 5",
        "CONNECT {host} HTTP/1.1\r\nTransfer-Encoding: chunked",
    ],
)
def test_an_ambiguous_request_reaches_no_server(head: str) -> None:
    """A length, a host, a target or a tunnel that another parser could read differently gets a
    403 before any connection is made.
    """
    with serving(page) as server, proxy(server.host, private=True) as (port, refused):  # type: ignore[arg-type]  # a page is a reply
        ready = head.format(url=f"http://{server.host}/", host=server.host)
        reply = ask(port, ready.encode("latin-1") + b"\r\n\r\n")
        assert server.connections == 0
        control = ask(port, f"GET http://{server.host}/a HTTP/1.1\r\n\r\n".encode())
    assert reply.startswith(b"HTTP/1.1 403 Forbidden\r\n"), reply
    assert len(refused) == 1
    assert b"GET /a" in control


def test_bytes_behind_a_tunnels_head_go_into_the_tunnel() -> None:
    """A request behind CONNECT is content of the tunnel to the checked host, not a request to the
    proxy.
    """
    behind = b"CONNECT other.example:443 HTTP/1.1\r\n\r\n"
    with recorded("CONNECT {host} HTTP/1.1\r\nHost: other.example", behind) as (server, reply):
        assert reply.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
        assert server.received == behind


def test_a_slow_head_has_one_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that keeps sending single bytes is cut off at the time limit of the whole head."""
    monkeypatch.setattr(proxy_module, "TIMEOUT_S", 0.2)
    with proxy("api.example.com") as (port, refused):
        with (
            socket.create_connection(("127.0.0.1", port), 10) as connection,
            pytest.raises(ConnectionError),
        ):
            for _ in range(20_000):
                connection.sendall(b"x")
                connection.settimeout(0.001)
                with suppress(TimeoutError):
                    if not connection.recv(1):
                        raise ConnectionResetError
        assert refused == []


def test_a_host_that_does_not_answer_is_no_refusal() -> None:
    """A closed port is reported as 502 with its address, not as a refusal of the policy."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
    with proxy(host, private=True) as (port, refused):
        reply = ask(port, f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
    assert reply.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert host.encode() in reply
    assert refused == []


CLOSE = ("169.254.169.254", "[fd00:ec2::254]", "[fe80::1]", "100.100.100.200")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.0.0.1", "[::1]", "[::ffff:127.0.0.1]", *CLOSE]
)
def test_any_host_is_any_public_one(host: str) -> None:
    """An address that is not public is refused by every policy without ``private``, whether the
    policy names any host or this one.
    """
    for hosts in (("*",), (f"{host}:*",)):
        with proxy(*hosts) as (port, refused):
            answer = ask(port, f"CONNECT {host}:9 HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n"), answer
        assert '"script": {"private": true}' in refused[0][1]


@pytest.mark.parametrize("host", CLOSE)
def test_addresses_of_machine_credentials_are_named_one_by_one(host: str) -> None:
    """A link-local or metadata address needs its own entry besides ``private``."""
    with proxy("*", private=True) as (port, refused):
        assert ask(port, f"CONNECT {host}:9 HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 403 ")
    assert f'the policy has to name "{host.strip("[]")}" itself under network' in refused[0][1]


def test_private_adds_this_machine() -> None:
    """The rule ``private`` opens loopback to any host of the policy."""
    with serving(page) as server, proxy("*", private=True) as (port, refused):  # type: ignore[arg-type]  # a page is a reply
        assert b"GET /a" in ask(
            port, f"GET http://localhost:{server.port}/a HTTP/1.1\r\n\r\n".encode()
        )
    assert refused == []


@pytest.mark.parametrize("address", ["0.0.0.1", "[::]", "240.0.0.1", "224.0.0.1"])
def test_no_policy_reaches_what_is_no_address(address: str) -> None:
    """The unspecified address, multicast and reserved ones are refused by every policy."""
    with proxy(f"{address}:*", private=True) as (port, refused):
        assert ask(port, f"CONNECT {address}:9 HTTP/1.1\r\n\r\n".encode()).startswith(
            b"HTTP/1.1 403 "
        )
    assert "nothing can be asked at" in refused[0][1]


def test_garbage_does_no_harm() -> None:
    """Endless heads, silence and early goodbyes leave a proxy that still answers."""
    with proxy("api.example.com") as (port, _):
        with pytest.raises(ConnectionError):
            ask(port, b"x" * (HEAD_BYTES * 20))
        socket.create_connection(("127.0.0.1", port)).close()
        assert ask(port, b"GET http://a.example/ HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403")


def test_leaving_ends_open_connections() -> None:
    """A tunnel that neither side closes does not delay the end of the run."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"127.0.0.1:{server.getsockname()[1]}"
        with proxy(host, private=True) as (port, _):
            client = socket.create_connection(("127.0.0.1", port), 10)
            client.sendall(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
            other, _ = server.accept()
            left_s = time.monotonic()
        # the proxy did not wait until the tunnel had been silent for too long
        assert time.monotonic() - left_s < TIMEOUT_S / 2
        with client, other:
            assert client.recv(10) == b""
            assert other.recv(10) == b""
