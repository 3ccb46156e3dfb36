"""Streams of a session over real sockets: timeouts, deadline and cancellation."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpcore2
import pytest
from uncaged_engine.network.connection import NetworkSession, system_lookup
from uncaged_engine.network.problems import RequestCancelled, WebProblem
from uncaged_engine.network.stream import Backend, Stream


@contextmanager
def connected(session: NetworkSession) -> Iterator[tuple[Stream, socket.socket]]:
    """A stream of a session and the server's end of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        backend = Backend(session, None, system_lookup)
        stream = backend.connect_tcp("127.0.0.1", listener.getsockname()[1])
        other, _ = listener.accept()
        with other:
            yield stream, other
        stream.close()


def test_a_silent_server_ends_a_read_at_its_timeout_and_at_the_deadline() -> None:
    """The timeout of a read and the deadline of its session both hold; the earlier one is
    raised.
    """
    session = NetworkSession()
    session.begin(time.monotonic() + 60)
    with connected(session) as (stream, _):
        with pytest.raises(httpcore2.ReadTimeout, match=r"no byte within 0\.05 s"):
            stream.read(1, timeout=0.05)
        assert not session.is_over
        session.begin(time.monotonic() + 0.05)
        with pytest.raises(WebProblem) as caught:
            stream.read(1, timeout=60)
    assert caught.value.kind == "timeout"
    assert session.is_over


def test_a_server_that_reads_nothing_ends_a_write_at_its_timeout() -> None:
    """A write into full buffers has a timeout, too."""
    session = NetworkSession()
    session.begin(time.monotonic() + 60)
    with connected(session) as (stream, _), pytest.raises(httpcore2.WriteTimeout):
        stream.write(bytes(64 << 20), timeout=0.05)


def test_a_cut_ends_a_read_that_has_no_timeout() -> None:
    """A blocked read of another thread raises the cancellation."""
    session = NetworkSession()
    cut = session.begin(time.monotonic() + 60)
    with connected(session) as (stream, other):
        other.sendall(b"a")
        assert stream.read(1) == b"a"
        cutter = threading.Timer(0.05, cut)
        cutter.start()
        with pytest.raises(RequestCancelled):
            stream.read(1)
        cutter.join()


def test_a_session_that_has_not_begun_connects_to_nothing() -> None:
    """No connection is made before a session has a deadline."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        pytest.raises(WebProblem, match="time for the request was over"),
    ):
        Backend(NetworkSession(), None, system_lookup).connect_tcp(
            "127.0.0.1", listener.getsockname()[1]
        )
