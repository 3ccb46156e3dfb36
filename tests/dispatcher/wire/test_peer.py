"""Clients that flood, lie about ids, send anything, or never read: each is limited or dropped, and
the others go on.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
from uncaged_bundles.ids import new_thread_id
from uncaged_dispatcher.wire.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REFUSED,
    call_text,
)
from uncaged_dispatcher.wire.peer import MAX_FOLLOWED, RateLimit
from uncaged_engine.services.listening import token_of
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from .conftest import ServedStore

WAIT_S = 60.0
ULID = new_thread_id(1, bytes(10))


@contextmanager
def raw(served: ServedStore, **options: Any) -> Iterator[ClientConnection]:
    """Connect without the client's own order."""
    headers = {"Authorization": f"Bearer {token_of(served.engine.store)}"}
    address = served.address.replace("http:", "ws:")
    with connect(address, additional_headers=headers, proxy=None, **options) as connection:
        yield connection


def ask(connection: ClientConnection, text: str | bytes) -> Any:
    """Send a message and return the next answer."""
    connection.send(text)
    while True:
        message = json.loads(connection.recv(WAIT_S))
        if isinstance(message, list) or "method" not in message:
            return message


def code(connection: ClientConnection, method: str, params: Any) -> int | None:
    """Return the error code of a call, None if it succeeds."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = ask(connection, json.dumps(call))
    assert answer["id"] == 1
    found = answer.get("error", {}).get("code")
    assert found is None or isinstance(found, int)
    return found


@pytest.mark.slow
def test_each_wrong_message_has_its_own_error(served: ServedStore) -> None:
    """A wrong message, method or parameter is answered, and the connection goes on."""
    with raw(served) as client:
        assert ask(client, "{")["error"]["code"] == PARSE_ERROR
        assert ask(client, b"{}")["error"]["code"] == INVALID_REQUEST
        assert ask(client, " " * (1 << 20) + " ")["error"]["code"] == INVALID_REQUEST
        assert code(client, "delete", {}) == METHOD_NOT_FOUND
        assert code(client, "_submit", {}) == METHOD_NOT_FOUND
        assert code(client, "cancel", ["x"]) == INVALID_PARAMS
        assert code(client, "cancel", {}) == INVALID_PARAMS
        assert code(client, "cancel", {"request": 1}) == INVALID_PARAMS
        assert code(client, "cancel", {"request": "x", "more": 1}) == INVALID_PARAMS
        assert code(client, "log", {"after": -1}) == REFUSED
        assert code(client, "complete", {"text": "x", "direction": "up"}) == INVALID_PARAMS
        assert code(client, "complete", {"text": "x" * 200_000}) == REFUSED
        assert code(client, "explain", {"text": "x" * 200_000}) == REFUSED
        for conversation in ("../../config", "/etc/passwd", "", "none", ULID, "x\0y"):
            assert code(client, "log", {"conversation": conversation}) == REFUSED, conversation
            assert code(client, "status", {"conversation": conversation}) == REFUSED, conversation
        for text in ("", "a\0b", "\u202eabc", "x" * 70_000):
            assert code(client, "submit", {"text": text}) == REFUSED
        assert code(client, "submit", {"text": "count 1", "id": "../x"}) == REFUSED
        assert code(client, "submit", {"text": "count 1", "directory": "here"}) == REFUSED
        assert code(client, "answer", {"request": ULID, "question": 0, "value": {}}) == REFUSED
        assert code(client, "status", {}) is None


@pytest.mark.slow
def test_a_batch_is_performed_in_order_and_answered_once(served: ServedStore) -> None:
    """Calls of one message are performed one after the other; notifications have no answer."""
    calls = [
        json.loads(call_text("submit", {"text": "sleeper", "clientId": "a"}, 1)),
        json.loads(call_text("promote", {"request": "b"})),
        json.loads(call_text("cancel", {"request": "a"}, 2)),
        7,
    ]
    with raw(served) as client:
        answers = ask(client, json.dumps(calls))
    by_id = {answer["id"]: answer for answer in answers}
    assert set(by_id) == {1, 2, None}
    assert by_id[1]["result"]["entry"]["clientId"] == "a"
    assert by_id[2]["result"]["cancelled"] in ("cancelled_queued", "cancelled_running")


@pytest.mark.slow
def test_calls_with_one_id_are_not_answered_twice(served: ServedStore) -> None:
    """A call under the id of one that is still performed is an error without that id."""
    with raw(served) as client:
        log = call_text("log", {}, "same")
        for _ in range(6):
            client.send(log)
        answers = [json.loads(client.recv(WAIT_S)) for _ in range(6)]
        refused = [answer for answer in answers if "error" in answer]
        assert all(answer["id"] is None for answer in refused)
        assert {answer["id"] for answer in answers if "result" in answer} == {"same"}
        assert code(client, "status", {}) is None


@pytest.mark.slow
def test_a_client_follows_any_number_of_conversations_in_turn(served: ServedStore) -> None:
    """Only what is followed at once counts: the limit is not reached by those that were left."""
    with served.client() as client:
        for _ in range(MAX_FOLLOWED + 1):
            made = client.call("new")["conversation"]
            client.call("log", conversation=made, follow=True)
            assert client.call("unfollow", conversation=made)["unfollowed"] is True
        assert client.call("unfollow", conversation=made)["unfollowed"] is False


@pytest.mark.slow
def test_a_client_that_floods_and_never_reads_is_dropped(served: ServedStore) -> None:
    """Its connection ends although it keeps sending; a request of another client is performed
    meanwhile.
    """
    with served.client() as other:
        for number in range(12):
            other.submit("x" * 30_000 + str(number)).result(WAIT_S)
        slow = other.submit("sleeper")
        with suppress(ConnectionClosed), raw(served, max_queue=1) as client:
            message = call_text("log", {}, 1).encode()
            frame = b"\x81" + bytes([0x80 | len(message)]) + bytes(4) + message
            with closing(client.socket.dup()) as flooding, pytest.raises(ConnectionError):
                flooding.settimeout(WAIT_S)
                sent = 0
                while True:
                    flooding.sendall(frame)
                    sent += 1
                    if sent == 100:
                        assert other.submit("count 2", interrupt=True).result(WAIT_S)["success"]
            client.close_socket()
        assert slow.result(WAIT_S)["status"] == "cancelled"
        assert other.call("status")["open"] == []


@pytest.mark.slow
def test_a_client_that_never_reads_the_records_it_asked_for_is_dropped(
    served: ServedStore,
) -> None:
    """Records wait for their client within limits and within the write time, then its connection
    is closed.
    """
    with served.client() as other:
        for number in range(30):
            other.submit("x" * 30_000 + str(number)).result(WAIT_S)
        with suppress(ConnectionClosed), raw(served, max_queue=1) as client:
            with closing(client.socket.dup()) as silent:
                silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                for number in range(12):
                    client.send(call_text("log", {"follow": True}, number))
                with pytest.raises((ConnectionError, ConnectionClosed)):
                    while True:
                        client.ping().wait(0.1)
            client.close_socket()
        assert other.submit("count 1").result(WAIT_S)["success"]


def test_a_rate_limit_delays_what_is_too_fast() -> None:
    """A burst passes at once; after it each call waits for its share of a second."""
    now = [0.0]
    limit = RateLimit(10, 20, lambda: now[0])
    assert limit.take(20) == 0
    assert limit.take(1) == pytest.approx(0.1)
    assert limit.take(5) == pytest.approx(0.6)
    now[0] += 100
    assert limit.take(20) == 0
    assert limit.take(2) == pytest.approx(0.2)
