"""Requests of one or several processes in one conversation, on real workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from testbed.bundles import granted, source, thread_id
from testbed.conversing import agree, decline, now_ms, sentence, session
from testbed.foreground import environment
from testbed.steering import intent_of, settle, wait_for
from uncaged_bundles.errors import RefusedError
from uncaged_dispatcher.calls import Call
from uncaged_dispatcher.conversations.live import NO_CALLER, RequestEvent
from uncaged_dispatcher.conversations.log import read_records, read_state
from uncaged_dispatcher.conversations.requests import ConversationRequest
from uncaged_engine.api import Engine
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.shipped import add_shipped_flows

pytestmark = pytest.mark.slow


def run(
    engine: Engine, conversation: str, text: str, *, number: int = 1, answers: Any = agree
) -> list[RequestEvent]:
    """The events of one request of this process."""
    access = session(engine, conversation)
    return list(access.run(sentence(thread_id(number), text), NO_CALLER, answers))


def refuse_to_answer(question: Mapping[str, Any]) -> Mapping[str, object]:
    raise AssertionError(f"asked: {question}")


def kinds(events: Sequence[RequestEvent]) -> list[str]:
    return [event["event"] for event in events]


def result(events: Sequence[RequestEvent]) -> dict[str, Any]:
    assert events[-1]["event"] == "result", events
    found: dict[str, Any] = events[-1]["result"]
    return found


def shapes(engine: Engine, conversation: str) -> list[str]:
    """The second key of each record: what it is."""
    return [list(record)[1] for record in read_records(engine.store, conversation)]


def test_a_sentence_is_read_started_and_settled(engine: Engine, conversation: str) -> None:
    """The log has the request, how it was read, its thread and the result, in this order."""
    events = run(engine, conversation, "count 4")
    assert kinds(events) == ["accepted", "reading", "thread", "result"]
    assert result(events)["message"] == "sum 10"
    assert shapes(engine, conversation) == ["request", "reading", "thread", "result"]
    [exchange] = read_state(engine.store, conversation).exchanges
    assert exchange.result.thread == events[2]["threadId"]
    assert engine.thread(events[2]["threadId"]).start["parameters"]["prompt"] == "count 4"


def test_records_after_a_number_are_those_that_came_later(
    engine: Engine, conversation: str
) -> None:
    """Numbers are those of the records; a replay of all shows the same as the parts."""
    run(engine, conversation, "count 1")
    whole = list(read_records(engine.store, conversation))
    assert [record["seq"] for record in whole] == [1, 2, 3, 4]
    assert list(read_records(engine.store, conversation, after=2)) == whole[2:]
    assert list(read_records(engine.store, conversation, after=99)) == []


def test_a_miss_starts_no_thread(engine: Engine, conversation: str) -> None:
    """A sentence that no tier reads settles as missed, with the exit code of a thing not found."""
    events = run(engine, conversation, "what is this")
    assert kinds(events) == ["accepted", "result"]
    assert (result(events)["status"], result(events)["exitCode"]) == ("missed", 5)
    assert engine.threads() == []


def test_a_flow_that_was_removed_after_the_reading_ends_its_request_alone(
    engine: Engine, conversation: str
) -> None:
    """The request is refused by name, and the conversation goes on."""
    events = run(engine, conversation, "gone 1")
    assert kinds(events) == ["accepted", "reading", "result"]
    assert (result(events)["status"], result(events)["exitCode"]) == ("refused", 5)
    assert "gone" in result(events)["message"]
    assert result(run(engine, conversation, "count 1", number=2))["success"]


def test_a_flow_that_raises_ends_its_thread_alone(engine: Engine, conversation: str) -> None:
    """An exception of a flow is its thread's failure; the next request runs."""
    granted(engine.store, source("shown", "    raise ValueError('broken')\n    yield\n"))
    assert result(run(engine, conversation, "shown"))["status"] == "failed"
    assert result(run(engine, conversation, "count 1", number=2))["success"]


@pytest.mark.parametrize("text", ["maybe count 3", "sure count 3"])
def test_consent_is_asked_before_the_thread(engine: Engine, conversation: str, text: str) -> None:
    """A model's reading and a marked flow run after a yes alone; the answer is in the log."""
    events = run(engine, conversation, text, answers=decline)
    assert kinds(events) == ["accepted", "reading", "question", "result"]
    assert result(events)["status"] == "refused"
    assert engine.threads() == []
    events = run(engine, conversation, text, number=2)
    assert kinds(events) == ["accepted", "reading", "question", "thread", "result"]
    answers = [one["answer"] for one in read_records(engine.store, conversation) if "answer" in one]
    assert answers == [{"run": False}, {"run": True, "choice": "1"}]


def test_a_request_that_was_agreed_to_beforehand_asks_nothing(
    engine: Engine, conversation: str
) -> None:
    """With consent in the request, a model's reading runs at once."""
    request = sentence(thread_id(1), "maybe count 3", agreed=True)
    events = list(session(engine, conversation).run(request, NO_CALLER, decline))
    assert kinds(events) == ["accepted", "reading", "thread", "result"]


def test_a_person_can_edit_the_calls(engine: Engine, conversation: str) -> None:
    """The edited call runs instead of the one that was read."""
    edited = {"calls": [{"flow": "count", "params": {"n": 5}}]}
    events = run(engine, conversation, "maybe count 3", answers=lambda _question: edited)
    assert result(events)["message"] == "sum 15"


def test_a_collision_is_asked_about(engine: Engine, conversation: str) -> None:
    """The reading that the person chose runs."""
    events = run(engine, conversation, "either", answers=lambda _question: {"choice": "2"})
    assert result(events)["message"] == "sum 3"


def test_a_call_needs_no_sentence(engine: Engine, conversation: str) -> None:
    """A request with a call runs it without a reading."""
    call = Call(flow="count", params={"n": 2})
    request = ConversationRequest(id=thread_id(1), call=call)
    events = list(session(engine, conversation).run(request, NO_CALLER, decline))
    assert result(events)["message"] == "sum 3"


def test_further_calls_of_a_result_need_the_flows_right(engine: Engine, conversation: str) -> None:
    """A flow whose policy lets it start flows has its further calls run; for another one the
    person is asked, since a pure flow would do by its result what its policy forbids.
    """
    body = """
    yield {"null": {}}
    return {"success": True, "message": "first", "next": [{"flow": "count", "params": {"n": 2}}]}
"""
    granted(engine.store, source("shown", body, policy={"null": {}, "flow": {"names": ["count"]}}))
    events = run(engine, conversation, "shown", answers=decline)
    assert [event["result"]["message"] for event in events if event["event"] == "result"] == [
        "first",
        "sum 3",
    ]
    granted(engine.store, source("shown", body))
    events = run(engine, conversation, "shown", number=2, answers=decline)
    assert [event["result"]["status"] for event in events if event["event"] == "result"] == [
        "completed",
        "refused",
    ]


def test_no_result_and_no_model_runs_a_verb(engine: Engine, conversation: str) -> None:
    """A further call, a model's reading or a client's call that names a verb of the command line is
    refused as a flow that there is not, also with consent: verbs need no grant.
    """
    body = """
    yield {"null": {}}
    return {"success": True, "next": [{"flow": "@remove", "params": {"name": "count"}}]}
"""
    granted(engine.store, source("shown", body, policy={"null": {}, "flow": {}}))
    events = run(engine, conversation, "shown")
    assert result(events)["status"] == "refused"
    assert "'@remove'" in result(events)["message"]
    assert result(run(engine, conversation, "maybe @remove", number=2))["status"] == "refused"
    request = ConversationRequest(id=thread_id(3), call=Call(flow="@remove"), agreed=True)
    events = list(session(engine, conversation).run(request, NO_CALLER, agree))
    assert result(events)["status"] == "refused"
    # the control: a rule of a built-in pack may name one
    assert result(run(engine, conversation, "@conversation list", number=4))["status"] == "verb"


def test_the_question_of_a_thread_is_put_to_the_person(engine: Engine, conversation: str) -> None:
    """The thread's question is a record of the conversation, an answer that does not fit is asked
    for again with the reason, and the thread goes on with the one that fits.
    """
    asked: list[Mapping[str, Any]] = []

    def answer(question: Mapping[str, Any]) -> Mapping[str, object]:
        asked.append(question)
        return {"value": "green"} if len(asked) == 1 else {"choice": "2"}

    events = run(engine, conversation, "choosing", answers=answer)
    assert kinds(events) == ["accepted", "reading", "thread", "question", "answered", "result"]
    assert result(events)["message"] == "blue"
    choices = [{"id": n, "label": text, "value": text} for n, text in (("1", "red"), ("2", "blue"))]
    assert asked[0] == {
        "kind": "thread",
        "question": "which?",
        "threadId": events[2]["threadId"],
        "step": 1,
        "schema": {"enum": ["red", "blue"]},
        "choices": choices,
    }
    assert "green" in asked[1]["problem"]
    assert shapes(engine, conversation)[3:] == ["question", "answer", "result"]


def answered_by(engine: Engine, conversation: str, thread: str, *, text: str) -> list[str]:
    """Submit a request behind the one of a waiting thread, whose answer comes by `answer THREAD`;
    returns the results.
    """

    def elsewhere(question: Mapping[str, Any]) -> Mapping[str, object]:
        assert question["threadId"] == thread
        engine.answer(thread, text)
        return {"value": "late"}

    run(engine, conversation, "count 2", number=2, answers=elsewhere)
    return [
        one["result"]["message"]
        for one in read_records(engine.store, conversation)
        if "result" in one
    ]


def test_a_question_outlives_the_process_that_put_it(engine: Engine, conversation: str) -> None:
    """A holder that is killed while a thread waits leaves its question: the next holder records it
    no second time, and puts it to the person who comes next, whose answer comes too late here:
    another terminal's counts.
    """
    holder = Client(engine, conversation, 1, "asking", "silent")
    asked = holder.until("question")
    holder.end()
    [waiting] = read_state(engine.store, conversation).open
    assert (waiting.question, waiting.question_seq) == (asked["question"], asked["seq"])
    thread = asked["question"]["threadId"]
    assert answered_by(engine, conversation, thread, text="red") == ["red", "sum 3"]
    records = list(read_records(engine.store, conversation))
    assert [one["seq"] for one in records if "question" in one] == [asked["seq"]]
    assert [one["answer"] for one in records if "answer" in one] == [{"value": "red"}]


def test_an_answer_whose_process_died_counts(engine: Engine, conversation: str) -> None:
    """A process that dies after it recorded an answer in the thread, and before it started the
    worker, leaves a thread that the conversation's holder resumes.
    """

    def elsewhere(question: Mapping[str, Any]) -> Mapping[str, object]:
        bundle, thread, _ = engine.store.locate_thread(question["threadId"])
        journal = JournalFile.open(engine.store, bundle, thread)
        journal.append(lines.control("answer", {"value": "red"}, now_ms()))
        journal.flush()
        journal.close()
        return {"value": "late"}

    events = run(engine, conversation, "asking", answers=elsewhere)
    assert kinds(events)[3:] == ["question", "answered", "result"]
    assert result(events)["message"] == "red"


def test_a_child_of_several_calls_puts_its_question(engine: Engine, conversation: str) -> None:
    """A call of several that waits for an answer has its question in the conversation, beside the
    thread that waits for it; the rest runs after the answer, which any process may give.
    """
    add_shipped_flows(engine.store, engine.registry, now_ms())
    access = session(engine, conversation)
    request = sentence(thread_id(1), "asking then count 2", agreed=True)
    events = []
    for event in access.run(request, NO_CALLER, refuse_to_answer):
        events.append(event)
        if event["event"] == "question":
            asked = event["question"]
            assert asked["parent"] == events[2]["threadId"] != asked["threadId"]
            engine.answer(asked["threadId"], "red")
    assert kinds(events) == ["accepted", "reading", "thread", "question", "answered", "result"]
    assert [one["message"] for one in result(events)["data"]["results"]] == ["red", "sum 3"]


def test_a_cancel_ends_a_child_that_waits(engine: Engine, conversation: str) -> None:
    """The thread of several calls and the child that waits for an answer are both killed."""
    add_shipped_flows(engine.store, engine.registry, now_ms())
    holder = Client(engine, conversation, 1, "asking then count 2")
    asked = holder.until("question")["question"]
    assert session(engine, conversation).cancel(thread_id(1)) == "cancelled_running"
    assert holder.until("result")["result"]["status"] == "cancelled"
    holder.end()
    for thread in (asked["parent"], asked["threadId"]):
        assert engine.thread(thread).summary.status == "killed"


def test_a_waiting_request_without_a_holder_is_cancelled(engine: Engine, conversation: str) -> None:
    """A request that waits for an answer ends with its thread when it is cancelled after its
    process died; the queued one behind it is not started by this.
    """
    holder = Client(engine, conversation, 1, "asking", "silent")
    thread = holder.until("question")["question"]["threadId"]
    behind = Client(engine, conversation, 2, "count 4", "silent")
    assert behind.until("blocked")["of"] == thread_id(1)
    for client in (holder, behind):
        client.end()
    access = session(engine, conversation)
    assert access.cancel(thread_id(1)) == "cancelled_running"
    assert engine.thread(thread).summary.status == "killed"
    state = read_state(engine.store, conversation)
    assert [one.result.status for one in state.exchanges] == ["cancelled"]
    assert [one.request.id for one in state.open] == [thread_id(2)]
    assert access.cancel(thread_id(2)) == "cancelled_queued"
    assert access.cancel(thread_id(2)) == "not_found"
    assert len(engine.threads()) == 1


def test_an_activity_lasts_until_a_flow_ends_it(engine: Engine, conversation: str) -> None:
    """The activity of a result is the conversation's until another result has null."""
    for number, activity in enumerate(('{"name": "music", "packs": ["player"]}', "None")):
        granted(
            engine.store,
            source("shown", f"    yield {{'null': {{}}}}\n    return {{'activity': {activity}}}\n"),
        )
        run(engine, conversation, "shown", number=2 * number + 1)
        run(engine, conversation, "count 1", number=2 * number + 2)
        found = read_state(engine.store, conversation).activity
        assert (None if found is None else found.name) == ("music" if number == 0 else None)


# Several processes


class Client:
    """A process that submits one request."""

    def __init__(self, engine: Engine, conversation: str, number: int, text: str, *words: str):
        command = [sys.executable, "-m", "testbed.conversing", str(engine.store.root), conversation]
        self.process = subprocess.Popen(
            [*command, thread_id(number), text, *words],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        assert self.process.stdout is not None
        yield from map(json.loads, self.process.stdout)

    def until(self, kind: str) -> dict[str, Any]:
        """Read up to the first event of a kind."""
        for event in self:
            if event["event"] == kind:
                return event
        raise AssertionError(f"no event {kind}")

    def end(self) -> int:
        self.process.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(timeout=60)


def test_requests_of_two_processes_run_one_at_a_time(engine: Engine, conversation: str) -> None:
    """Both submit at the same time; each gets its own result, and the second thread starts after
    the first has ended.
    """
    clients = [Client(engine, conversation, number, f"marked {number}") for number in range(1, 5)]
    results = [client.until("result")["result"] for client in clients]
    assert [client.process.wait(timeout=60) for client in clients] == [0] * 4
    for client in clients:
        client.end()
    assert [one["message"] for one in results] == [f"{number} answers" for number in range(1, 5)]
    records = list(read_records(engine.store, conversation))
    order = [record["of"] for record in records if "thread" in record or "result" in record]
    assert order[::2] == order[1::2], "a thread, then its result"
    assert len(engine.threads()) == 4


def test_a_client_of_a_killed_holder_takes_over(engine: Engine, conversation: str) -> None:
    """The holder is killed while its thread runs and another process waits: that one follows the
    thread to its end, records its result, and runs its own request.
    """
    holder = Client(engine, conversation, 1, "sleeper")
    thread = holder.until("thread")["threadId"]
    waiting = Client(engine, conversation, 2, "count 3")
    assert waiting.until("accepted")["ahead"] == ["sleeper"]
    holder.process.send_signal(signal.SIGKILL)
    holder.end()
    wait_for(engine, thread, intent_of(1))
    engine.kill(thread)
    settle(engine, thread)
    assert waiting.until("result")["result"]["message"] == "sum 6"
    waiting.end()
    results = [one["result"] for one in read_records(engine.store, conversation) if "result" in one]
    assert [one["status"] for one in results] == ["killed", "completed"]
    assert len(engine.threads()) == 2


def test_one_process_cancels_the_running_request_of_another(
    engine: Engine, conversation: str
) -> None:
    """The thread is killed, and the other process hears of the end when it has really ended."""
    holder = Client(engine, conversation, 1, "sleeper")
    thread = holder.until("thread")["threadId"]
    wait_for(engine, thread, intent_of(1))
    access = session(engine, conversation)
    assert access.cancel(thread_id(2)) == "not_found"
    assert access.cancel(thread_id(1)) == "cancelled_running"
    ended = holder.until("result")["result"]
    holder.end()
    assert (ended["status"], ended["threadId"]) == ("cancelled", thread)
    assert engine.thread(thread).summary.status == "killed"


def test_a_detached_thread_is_followed_by_the_next_holder(
    engine: Engine, conversation: str
) -> None:
    """A client that leaves after its thread has started loses nothing: the next request waits for
    that thread, and its result is recorded first.
    """
    client = Client(engine, conversation, 1, "marked 5", "detach")
    thread = client.until("thread")["threadId"]
    assert client.process.wait(timeout=60) == 0
    client.end()
    assert result(run(engine, conversation, "count 2", number=2))["message"] == "sum 3"
    exchanges = read_state(engine.store, conversation).exchanges
    assert [one.result.thread == thread for one in exchanges] == [True, False]


def test_a_request_that_is_submitted_again_runs_once(engine: Engine, conversation: str) -> None:
    """The same id with the same sentence is the same request; with another one it is refused."""
    first = run(engine, conversation, "marked 2")
    assert result(run(engine, conversation, "marked 2")) == result(first)
    assert len(engine.threads()) == 1
    with pytest.raises(RefusedError, match="duplicate_id"):
        run(engine, conversation, "marked 3")


def test_requests_of_dead_clients_make_room(engine: Engine, conversation: str) -> None:
    """A conversation whose queue a crash left full runs it before it takes a new request."""
    holder = Client(engine, conversation, 1, "sleeper")
    holder.until("thread")
    flood = [Client(engine, conversation, number, "what") for number in range(2, 4)]
    for client in flood:
        client.until("accepted")
        os.kill(client.process.pid, signal.SIGKILL)
        client.end()
    holder.end()
    [thread] = engine.threads()
    wait_for(engine, thread.thread_id, intent_of(1))
    engine.kill(thread.thread_id)
    assert result(run(engine, conversation, "count 1", number=9))["success"]
    exchanges = read_state(engine.store, conversation).exchanges
    assert [one.result.status for one in exchanges] == ["killed", "missed", "missed", "completed"]
