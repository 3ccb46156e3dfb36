"""The socket of a held conversation, and clients that flood, lie, send nonsense or never read."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from testbed.bundles import thread_id
from testbed.conversing import WordReader, now_ms
from testbed.steering import intent_of, wait_for
from uncaged_dispatcher.conversations.holder import Holder
from uncaged_dispatcher.conversations.log import ConversationLog, read_records, socket_of
from uncaged_dispatcher.conversations.request_queue import MAX_QUEUED
from uncaged_dispatcher.conversations.serving import (
    MAX_CONNECTIONS,
    MAX_MESSAGE_BYTES,
    ConversationServer,
)
from uncaged_engine.api import Engine
from uncaged_engine.services.local_sockets import receive_line

pytestmark = pytest.mark.slow


@pytest.fixture
def holder(engine: Engine, conversation: str) -> Iterator[Holder]:
    """A holder that serves the conversation."""
    log = ConversationLog.open(engine.store, conversation, now_ms)
    assert log is not None
    holder = Holder(engine, log, WordReader(), now_ms)
    server = ConversationServer(engine.store, holder)
    try:
        with holder:
            yield holder
            server.unlink()
    finally:
        server.close()


class Client:
    """A connection that sends whatever a test wants."""

    def __init__(self, engine: Engine, conversation: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(30)
        self.socket.connect(str(socket_of(engine.store, conversation)))
        self.buffer = bytearray()

    def send(self, message: object) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        line = receive_line(self.socket, self.buffer)
        assert line is not None, "the connection was closed"
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, message: dict[str, object]) -> dict[str, Any]:
        """Send a message and return its reply; events that come before it are dropped."""
        self.send({**message, "tag": "mine"})
        while (reply := self.receive()).get("tag") != "mine":
            pass
        return reply

    def until(self, kind: str) -> dict[str, Any]:
        while (event := self.receive()).get("event") != kind:
            pass
        return event

    def is_closed(self) -> bool:
        """Read to the end; False if none comes."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def client(engine: Engine, conversation: str, holder: Holder) -> Iterator[Client]:
    del holder
    found = Client(engine, conversation)
    yield found
    found.close()


def submit(number: int, text: str = "count 1", **fields: object) -> dict[str, object]:
    return {"op": "submit", "request": {"id": thread_id(number), "text": text, **fields}}


def test_a_waiting_request_is_shown_and_cancelled(client: Client, engine: Engine) -> None:
    """A request whose thread waits for an answer is `waiting` in the snapshots, with the number of
    the question, and those behind it hear of it; cancelled, it ends with its thread.
    """
    client.ask(submit(1, "asking"))
    asked = client.until("question")
    running = client.ask({"op": "snapshot"})["snapshot"]["running"]
    assert (running["state"], running["question"]) == ("waiting", asked["seq"])
    client.send(submit(2))
    blocked = client.until("blocked")
    assert blocked["question"] == asked["question"]
    assert (blocked["of"], blocked["seq"], blocked["attended"]) == (
        thread_id(1),
        asked["seq"],
        True,
    )
    assert client.ask({"op": "cancel", "id": thread_id(1)})["cancelled"] == "cancelled_running"
    assert client.until("result")["result"]["status"] == "cancelled"
    assert engine.thread(asked["question"]["threadId"]).summary.status == "killed"
    assert client.until("result")["result"]["message"] == "sum 1"


def test_a_client_gets_the_events_of_its_request(client: Client) -> None:
    """The reply names the request; its events follow, up to the result."""
    reply = client.ask(submit(1, clientId="mine"))
    assert reply == {
        "tag": "mine",
        "ok": True,
        "entry": {"id": thread_id(1), "clientId": "mine"},
    }
    assert client.until("result")["result"]["message"] == "sum 1"


def test_two_clients_share_the_queue(engine: Engine, conversation: str, client: Client) -> None:
    """One promotes and cancels what another submitted; both see snapshots with rising versions,
    and a cancelled request never shows as queued again.
    """
    other = Client(engine, conversation)
    assert other.ask({"op": "observe"})["snapshot"]["queued"] == []
    client.ask(submit(1, "sleeper"))
    thread = client.until("thread")["threadId"]
    client.ask(submit(2, clientId="second"))
    client.ask(submit(3))
    assert other.ask({"op": "promote", "id": thread_id(3)})["promoted"] is True
    assert other.ask({"op": "promote", "id": thread_id(1)})["promoted"] is False
    assert other.ask({"op": "cancel", "id": "second"})["cancelled"] == "cancelled_queued"
    assert other.ask({"op": "cancel", "id": "second"})["cancelled"] == "not_found"
    assert client.until("result")["result"]["status"] == "cancelled"
    wait_for(engine, thread, intent_of(1))
    for _ in range(2):
        assert other.ask({"op": "cancel", "id": thread_id(1)})["cancelled"] == "cancelled_running"
    ended = client.until("result")
    assert (ended["id"], ended["result"]["status"]) == (thread_id(1), "cancelled")
    assert engine.thread(thread).summary.status == "killed"
    assert client.until("result")["id"] == thread_id(3)
    client.close()
    other.close()
    records = [one for one in read_records(engine.store, conversation) if "promote" in one]
    assert [one["promote"] for one in records] == [thread_id(3)]


def test_snapshots_rise_and_never_show_a_cancelled_request_again(client: Client) -> None:
    """Each snapshot that is pushed has a higher version than the one before."""
    client.send({"op": "observe"})
    client.send(submit(1, "sleeper"))
    for number in range(2, 6):
        client.send(submit(number))
    client.send({"op": "cancel", "id": thread_id(3)})
    client.send({"op": "cancel", "id": thread_id(1)})
    versions, gone = [0], False
    while True:
        message = client.receive()
        if message.get("event") != "snapshot":
            continue
        shown = message["snapshot"]
        assert shown["version"] > versions[-1]
        versions.append(shown["version"])
        queued = [entry["id"] for entry in shown["queued"]]
        assert not (gone and thread_id(3) in queued)
        gone = gone or (len(versions) > 5 and thread_id(3) not in queued)
        if shown["running"] is None and not queued and len(versions) > 8:
            break


def test_an_interrupt_cancels_the_running_request_and_goes_first(
    engine: Engine, client: Client
) -> None:
    """The thread that ran is killed, and the new request runs before those that waited."""
    client.ask(submit(1, "sleeper"))
    thread = client.until("thread")["threadId"]
    wait_for(engine, thread, intent_of(1))
    client.ask(submit(2))
    client.ask({**submit(3, "count 3"), "interrupt": True})
    ended = [client.until("result") for _ in range(3)]
    assert [one["id"] for one in ended] == [thread_id(1), thread_id(3), thread_id(2)]
    assert [one["result"]["status"] for one in ended] == ["cancelled", "completed", "completed"]
    assert engine.thread(thread).summary.status == "killed"


def test_a_flood_is_refused_with_the_maximum(
    engine: Engine, conversation: str, client: Client
) -> None:
    """A hundred requests wait; each further one is refused, and another client still gets
    answers.
    """
    client.send(submit(0, "sleeper"))
    client.until("thread")
    for number in range(1, 400):
        client.send(submit(number))
    replies: list[dict[str, Any]] = []
    while len(replies) < 399:
        message = client.receive()
        if "ok" in message:
            replies.append(message)
    # the first answer may be that to the sleeper
    refused = [reply for reply in replies if not reply["ok"]]
    assert all(reply == {"ok": False, "error": "queue_full", "maximum": 100} for reply in refused)
    assert len(refused) in (298, 299)
    other = Client(engine, conversation)
    assert len(other.ask({"op": "snapshot"})["snapshot"]["queued"]) == MAX_QUEUED
    other.close()
    assert sum("request" in one for one in read_records(engine.store, conversation)) == 101


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"op": "submit", "request": {"id": "x", "text": "count 1"}}, "is no request id"),
        ({"op": "submit", "request": {"id": thread_id(1)}}, "neither or both"),
        ({"op": "submit", "request": {"id": thread_id(1), "text": 7}}, "cannot be 7"),
        ({"op": "submit", "request": [1]}, "is a JSON object"),
        (submit(1, colour="red"), "no field 'colour'"),
        (submit(1, directory="here"), "not absolute"),
        (submit(1, clientId="\n"), "printable"),
        (submit(1, clientId="x" * 201), "printable"),
        (submit(1, parent=thread_id(2), depth=1), "has no parent"),
        (submit(1, agreed="yes"), "cannot be 'yes'"),
        (submit(1, attachments=[1]), "are paths"),
        (submit(1, call={"flow": "count", "more": 1}), "a call is"),
        (submit(1, call={"flow": "count"}), "neither or both"),
        ({**submit(1), "environment": {"A": 1}}, "object of texts"),
        (submit(1, "a\x00b"), "U+0000"),
        ({"op": "answer", "id": thread_id(1), "question": 0, "value": {}}, "does not ask"),
        ({"op": "answer", "id": thread_id(1), "question": 1, "value": "yes"}, "is an object"),
        ({"op": "attach", "id": thread_id(1)}, "no request"),
        ({"op": "shutdown"}, "no operation 'shutdown'"),
        ({}, "no operation None"),
    ],
)
def test_nonsense_gets_an_error_of_its_own(
    client: Client, message: dict[str, object], problem: str
) -> None:
    """The connection goes on, and nothing is recorded."""
    assert problem in client.ask(message)["error"]["message"]
    assert client.ask({"op": "snapshot"})["snapshot"]["version"] == 0


def test_lines_that_are_no_objects_get_an_error(client: Client) -> None:
    """Broken JSON, other values, bytes that are no UTF-8, deep nesting: an error each."""
    for line in (b"{\n", b"[]\n", b"\xff\n", b"null\n", b"[" * 100_000 + b"\n"):
        client.socket.sendall(line)
        assert "not understood" in client.receive()["error"]["message"]
    assert client.ask({"op": "snapshot"})["ok"]


def test_an_endless_message_is_cut(engine: Engine, conversation: str, client: Client) -> None:
    """A message above the limit ends its connection, and no other."""
    other = Client(engine, conversation)
    try:
        for _ in range(MAX_MESSAGE_BYTES // 65536 + 10):
            client.socket.sendall(b"x" * 65536)
    except OSError:
        pass
    assert client.is_closed()
    assert other.ask({"op": "snapshot"})["ok"]
    other.close()


def test_an_id_of_another_request_is_refused(
    engine: Engine, conversation: str, client: Client
) -> None:
    """A client that submits something else under an id that is in use, ours or a client's, gets a
    refusal; the request that has the id goes on.
    """
    client.ask(submit(1, "sleeper", clientId="mine"))
    client.until("thread")
    other = Client(engine, conversation)
    assert other.ask(submit(1, "count 1"))["error"] == "duplicate_id"
    assert other.ask(submit(2, "count 1", clientId="mine"))["error"] == "duplicate_id"
    assert other.ask(submit(2, "count 1", clientId=thread_id(1)))["error"] == "duplicate_id"
    running = other.ask({"op": "snapshot"})["snapshot"]["running"]
    assert (running["id"], running["text"]) == (thread_id(1), "sleeper")
    other.close()
    assert client.ask({"op": "cancel", "id": "mine"})["cancelled"] == "cancelled_running"
    client.until("result")


def test_a_client_that_never_reads_is_dropped(
    engine: Engine, conversation: str, client: Client
) -> None:
    """Its unsent messages have a limit; other clients get theirs without delay."""
    lazy = Client(engine, conversation)
    lazy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    asking = json.dumps({"op": "nothing" * 1000}).encode() + b"\n"
    with pytest.raises(OSError):
        for _ in range(200_000):
            lazy.socket.sendall(asking)
    lazy.close()
    client.send(submit(1, "count 2"))
    assert client.until("result")["result"]["message"] == "sum 3"


def test_idle_connections_make_room(engine: Engine, conversation: str, client: Client) -> None:
    """A client that opens more connections than there may be loses its idle ones; a client with a
    request keeps its connection.
    """
    client.ask(submit(1, "sleeper"))
    idle = [Client(engine, conversation) for _ in range(MAX_CONNECTIONS + 20)]
    late = Client(engine, conversation)
    assert late.ask({"op": "snapshot"})["ok"]
    assert late.ask({"op": "cancel", "id": thread_id(1)})["cancelled"] == "cancelled_running"
    assert client.until("result")["result"]["status"] == "cancelled"
    assert any(one.is_closed() for one in idle[:5])
    for one in (*idle, late):
        one.close()


def test_a_question_waits_for_its_answer(client: Client) -> None:
    """The answer names the request and the question; a wrong number, and a second answer, are
    refused.
    """
    client.send(submit(1, "maybe count 2"))
    asked = client.until("question")
    assert asked["question"]["calls"] == [{"flow": "count", "params": {"n": 2}}]
    answer = {"op": "answer", "id": thread_id(1), "value": {"run": True}}
    assert (
        "does not ask" in client.ask({**answer, "question": asked["seq"] + 1})["error"]["message"]
    )
    client.send({**answer, "question": asked["seq"]})
    assert client.until("result")["result"]["message"] == "sum 3"
    assert "error" in client.ask({**answer, "question": asked["seq"]})


def test_a_client_that_leaves_its_question_open_runs_nothing(
    engine: Engine, conversation: str, client: Client
) -> None:
    """The request ends without a thread, and the next one runs."""
    other = Client(engine, conversation)
    other.send(submit(1, "maybe count 2"))
    other.until("question")
    other.close()
    client.send(submit(2, "count 3"))
    assert client.until("result")["result"]["message"] == "sum 6"
    assert len(engine.threads()) == 1
    results = [one["result"] for one in read_records(engine.store, conversation) if "result" in one]
    assert "no client is connected" in results[0]["message"]


def test_a_drain_waits_and_then_rejects(client: Client, holder: Holder) -> None:
    """The running request may end until the timeout; then those that wait are rejected, and the
    clients hear that the server stops. Its thread goes on for the next holder.
    """
    client.ask(submit(1, "sleeper"))
    thread = client.until("thread")["threadId"]
    client.ask(submit(2))
    holder.drain(timeout_ms=50)
    rejected = client.until("result")
    assert (rejected["id"], rejected["result"]["status"]) == (thread_id(2), "server_stopping")
    assert client.until("left")["id"] == thread_id(1)
    client.send({**submit(3), "tag": "late"})
    while (late := client.receive()).get("tag") != "late":
        pass
    assert late.get("event") == "left"
    assert [one.request.id for one in holder.state.open] == [thread_id(1)]
    assert holder.state.open[0].thread is not None
    assert holder.state.open[0].thread["threadId"] == thread


def test_a_drain_does_not_wait_for_a_person(client: Client, holder: Holder, engine: Engine) -> None:
    """A request whose thread waits for an answer is left to the next holder at once; the answer is
    still awaited by the thread.
    """
    client.ask(submit(1, "asking"))
    asked = client.until("question")
    holder.drain(timeout_ms=3_600_000)
    assert client.until("left")["id"] == thread_id(1)
    assert holder.state.open[0].question == asked["question"]
    assert engine.thread(asked["question"]["threadId"]).summary.status == "waiting"


def test_late_requests_are_refused_while_draining(
    engine: Engine, conversation: str, client: Client, holder: Holder
) -> None:
    """A submit during the drain is refused with its reason."""
    import threading

    client.ask(submit(1, "sleeper"))
    client.until("thread")
    draining = threading.Thread(target=holder.drain)
    other = Client(engine, conversation)
    other.ask({"op": "observe"})
    draining.start()
    assert other.until("snapshot")["snapshot"]["stopping"] is True
    assert other.ask(submit(2)) == {"tag": "mine", "ok": False, "error": "server_stopping"}
    other.ask({"op": "cancel", "id": thread_id(1)})
    draining.join(timeout=60)
    assert not draining.is_alive(), "it ends as soon as nothing is left"
    other.close()
