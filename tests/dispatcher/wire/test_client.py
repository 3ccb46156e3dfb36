"""Requests over the wire: submitted, cancelled, answered, and found again after a lost
connection.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from testbed.serving import environment
from uncaged_dispatcher.wire.client import DispatcherClient, RemoteError, ServerUnreachable
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import token_of

from .conftest import ServedStore, serving

pytestmark = pytest.mark.slow
WAIT_S = 60.0
ULID = "01KQXKW0000000000000000001"
Json = Mapping[str, Any]


class Notices:
    """Notifications of a client, in order."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[str, Json]] = queue.SimpleQueue()

    def __call__(self, method: str, params: Json) -> None:
        self._queue.put((method, params))

    def record(self, key: str, of: str | None = None) -> Json:
        """Wait for a record that has this key, about this request, and return it."""
        while True:
            method, params = self._queue.get(timeout=WAIT_S)
            record = params.get("record", {})
            if method == "record" and key in record and of in (None, record.get("of")):
                return dict(record)

    def snapshot(self) -> Json:
        """Wait for the next snapshot and return it."""
        while True:
            method, params = self._queue.get(timeout=WAIT_S)
            if method == "snapshot":
                return dict(params["snapshot"])

    def snapshots_until_idle(self) -> list[Json]:
        """Return the snapshots up to the first that has no request."""
        found = [self.snapshot()]
        while found[-1]["running"] or found[-1]["queued"]:
            found.append(self.snapshot())
        return found


def running(client: DispatcherClient, notices: Notices, **options: Any) -> Any:
    """Submit a request that sleeps, and wait until its thread exists."""
    request = client.submit("sleeper", **options)
    notices.record("thread", request.id)
    return request


def test_a_submitted_sentence_settles_by_a_pushed_record(served: ServedStore) -> None:
    """The submit is answered with the request's id, and the result comes without being asked
    for.
    """
    with served.client() as client:
        request = client.submit("count 3")
        result = request.result(WAIT_S)
        assert (result["status"], result["message"]) == ("completed", "sum 6")
        log = client.call("log", conversation=request.conversation)
        keys = ("request", "reading", "thread", "result")
        kinds = [key for record in log["records"] for key in keys if key in record]
        assert kinds == list(keys)
        assert [record["seq"] for record in log["records"]] == [1, 2, 3, 4]
        assert client.call("log", after=3)["records"] == log["records"][3:]
        assert client.submit(call={"flow": "count", "params": {"n": 2}}).result(WAIT_S)["success"]


def test_a_sentence_for_reasoning_is_not_read(served: ServedStore) -> None:
    """With `reason`, the sentence goes to the flow of that name, which is disabled here, whatever
    reads it; a call or an attachment is refused beside it.
    """
    served.engine.registry.set_enabled("reason", False)
    with served.client() as client:
        result = client.submit("count 3", reason=True).result(WAIT_S)
        assert result["status"] == "refused"
        assert "uncaged-workflow enable reason" in result["message"]
        with pytest.raises(RemoteError, match="reasoning is a sentence"):
            client.submit(call={"flow": "count"}, reason=True)
        with pytest.raises(RemoteError, match="has no attachments"):
            client.submit("count 3", reason=True, attachments=["/a"])


def test_a_client_cancels_the_running_request_of_another(served: ServedStore) -> None:
    """The request ends as cancelled for the client that submitted it, its thread is killed, and a
    second cancel changes nothing.
    """
    notices = Notices()
    with served.client(notices) as first, served.client() as second:
        request = running(first, notices, client_id="mine")
        queued = first.submit("count 1")
        assert second.cancel("mine") == "cancelled_running"
        result = request.result(WAIT_S)
        assert result["status"] == "cancelled"
        assert served.engine.thread(result["threadId"]).summary.status == "killed"
        assert queued.result(WAIT_S)["message"] == "sum 1"
        assert second.cancel("mine") == "not_found"
        assert second.cancel(request.id) == "not_found"


def test_a_queued_request_is_cancelled_promoted_and_overtaken(served: ServedStore) -> None:
    """A cancelled one is gone at once; a promoted one runs before those that came earlier; an
    interrupting one cancels the running one and goes first.
    """
    notices = Notices()
    with served.client(notices) as client:
        first = running(client, notices)
        names = ("a", "b", "c")
        queued = {name: client.submit("count 1", client_id=name) for name in names}
        assert client.cancel("b") == "cancelled_queued"
        assert queued["b"].result(WAIT_S)["status"] == "cancelled"
        assert client.promote("c") is True
        assert client.promote(first.id) is False
        assert client.promote("nothing") is False
        last = client.submit("count 2", interrupt=True)
        assert first.result(WAIT_S)["status"] == "cancelled"
        for request in (last, queued["c"], queued["a"]):
            assert notices.record("thread")["of"] == request.id
            assert request.result(WAIT_S)["success"]


def test_snapshots_rise_and_show_no_cancelled_request_again(served: ServedStore) -> None:
    """The versions of the snapshots that a client gets rise strictly; a request that left the
    queue is in none of the later ones.
    """
    notices = Notices()
    with served.client(notices) as client, served.client() as other:
        request = running(client, notices)
        queued = [client.submit("count 1") for _ in range(5)]
        for one in queued[::2]:
            other.cancel(one.id)
        other.cancel(request.id)
        shown = notices.snapshots_until_idle()
    versions = [snapshot["version"] for snapshot in shown]
    assert versions == sorted(set(versions))
    seen: set[str] = set()
    gone: set[str] = set()
    for snapshot in shown:
        present = {entry["id"] for entry in snapshot["queued"]}
        assert not present & gone
        gone |= seen - present
        seen |= present


def test_a_proposal_is_edited_and_a_question_answered(served: ServedStore) -> None:
    """A proposed call runs as the client changed it, or not at all; one of several readings is
    chosen; the first answer counts.
    """
    notices = Notices()
    with served.client(notices) as client, served.client() as other:
        edited = client.submit("maybe count 3")
        asked = notices.record("question", edited.id)
        assert asked["question"]["calls"] == [{"flow": "count", "params": {"n": 3}}]
        about = {"request": edited.id, "question": asked["seq"]}
        with pytest.raises(RemoteError, match="a call is"):
            other.call("edit", **about, calls=[{"run": "rm"}])
        other.call("edit", **about, calls=[{"flow": "count", "params": {"n": 4}}])
        assert edited.result(WAIT_S)["message"] == "sum 10"
        with pytest.raises(RemoteError, match="does not ask"):
            client.call("answer", **about, value={"run": True})
        refused = client.submit("maybe count 3")
        asked = notices.record("question", refused.id)
        client.call("answer", request=refused.id, question=asked["seq"], value={"run": False})
        assert refused.result(WAIT_S)["status"] == "refused"
        either = client.submit("either")
        asked = notices.record("question", either.id)
        client.call("choose", request=either.id, question=asked["seq"], choice="2")
        assert either.result(WAIT_S)["message"] == "sum 3"


def test_the_question_of_a_thread_is_answered_over_the_wire(engine: Engine, site: Path) -> None:
    """A thread's question is a record; the status names it, another server has it after this one
    was killed, and one answer counts: that of the wire, or of another terminal.
    """
    notices = Notices()
    with serving(engine, site) as served, served.client(notices) as client:
        first = client.submit("choosing")
        asked = notices.record("question", first.id)
        with pytest.raises(RemoteError, match="green"):
            client.call("answer", request=first.id, question=asked["seq"], value={"value": "green"})
        client.call("choose", request=first.id, question=asked["seq"], choice="2")
        assert first.result(WAIT_S)["message"] == "blue"
        second = client.submit("choosing")
        asked = notices.record("question", second.id)
        served.process.kill()
        served.process.wait()
    with serving(engine, site) as served, served.client(notices) as client:
        client.follow(second.conversation, after=asked["seq"] - 1)
        [waiting] = client.call("status")["waiting"]
        assert waiting == {
            "request": second.id,
            "seq": asked["seq"],
            "question": asked["question"],
        }
        third = client.submit("choosing")
        engine.answer(asked["question"]["threadId"], "red")
        result = notices.record("result", second.id)["result"]
        assert (result["status"], result["message"]) == ("completed", "red")
        asked = notices.record("question", third.id)
        client.call("answer", request=third.id, question=asked["seq"], value={"value": "red"})
        with pytest.raises(RemoteError, match="does not ask"):
            client.call("answer", request=third.id, question=asked["seq"], value={"value": "blue"})
        assert third.result(WAIT_S)["message"] == "red"
        records = client.call("log", after=0)["records"]
        assert len([one for one in records if "question" in one]) == 3


def test_a_choice_that_a_result_offers_is_run(served: ServedStore) -> None:
    """Choosing submits the choice's call as a request of its own; a wrong id names the right
    ones.
    """
    notices = Notices()
    with served.client(notices) as client:
        shown = client.submit("shown")
        assert shown.result(WAIT_S)["choices"][0]["id"] == "a"
        with pytest.raises(RemoteError, match="none of the choices: a"):
            client.call("choose", request=shown.id, choice="b")
        entry = client.call("choose", request=shown.id, choice="a", clientId="chosen")["entry"]
        assert notices.record("result", entry["id"])["result"]["message"] == "sum 3"


def test_a_full_queue_is_refused_with_its_maximum(served: ServedStore) -> None:
    """The hundred and first waiting request is refused; another conversation goes on."""
    notices = Notices()
    with served.client(notices) as client:
        first = running(client, notices)
        for _ in range(100):
            client.submit("count 1")
        with pytest.raises(RemoteError, match=r"queue_full \(100 are the most\)"):
            client.submit("count 1")
        other = client.call("new", name="other")["conversation"]
        assert client.submit("count 2", conversation=other).result(WAIT_S)["success"]
        status = client.call("status", conversation=first.conversation)
        assert len(status["open"]) == 101


def test_a_client_finds_its_request_again_after_the_server_was_killed(
    engine: Engine, site: Path
) -> None:
    """The next server on the port follows the thread to its end; the client gets what came after
    the last record that it saw, each record once.
    """
    notices = Notices()
    with serving(engine, site) as served:
        client = served.client(notices)
        request = running(client, notices)
        queued = client.submit("count 2")
        port = urlsplit(served.address).port
        assert port is not None
        served.process.kill()
        served.process.wait()
    with client, serving(engine, site, port) as served:
        with served.client() as other:
            assert other.cancel(request.id, request.conversation) == "cancelled_running"
        assert request.result(WAIT_S)["status"] == "cancelled"
        assert queued.result(WAIT_S)["message"] == "sum 3"
        late = client.submit("count 1").result(WAIT_S)
        assert late["success"]


def test_a_request_of_another_process_goes_through_the_server(
    served: ServedStore, tmp_path: Path
) -> None:
    """In a conversation that the server holds, a request of the command line runs in the server's
    order, and clients of the wire see its records.
    """
    notices = Notices()
    with served.client(notices) as client:
        sleeping = running(client, notices)
        words = [str(served.engine.store.root), sleeping.conversation, ULID, "count 3"]
        with subprocess.Popen(
            [sys.executable, "-m", "testbed.conversing", *words],
            env=environment(served.engine),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        ) as other:
            assert other.stdout is not None
            assert json.loads(other.stdout.readline())["event"] == "accepted"
            assert client.cancel(sleeping.id) == "cancelled_running"
            events = [json.loads(line) for line in other.stdout]
        assert events[-1]["result"]["message"] == "sum 6"
        assert notices.record("result", ULID)["result"] == events[-1]["result"]


def test_a_stopping_server_finishes_and_rejects(served: ServedStore) -> None:
    """At a signal new requests are refused; what still waits after the drain time is rejected, and
    clients hear of both.
    """
    notices = Notices()
    with served.client(notices) as client:
        running(client, notices)
        queued = client.submit("count 1")
        served.process.terminate()
        while not notices.snapshot()["stopping"]:
            pass
        with pytest.raises(RemoteError, match="server_stopping"):
            client.submit("count 1")
        result = queued.result(WAIT_S)
        assert (result["status"], result["success"]) == ("server_stopping", False)
        served.process.wait(WAIT_S)
        assert served.process.returncode == 0
    # its thread goes on, for the next holder
    thread = served.engine.threads()[0]
    assert thread.status == "running"
    served.engine.kill(thread.thread_id)


def test_a_wrong_token_or_no_server_is_one_clear_error(served: ServedStore) -> None:
    """The message has the reason, and never the token."""
    token = token_of(served.engine.store)
    with pytest.raises(ServerUnreachable, match="status 401: the token is missing or wrong"):
        DispatcherClient(served.address, "x" * 43)
    with pytest.raises(ServerUnreachable, match="start `uncaged-workflow serve`") as absent:
        DispatcherClient("http://127.0.0.1:1/", token)
    assert token not in str(absent.value)
