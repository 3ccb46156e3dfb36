"""Execution of a request that a former holder left in the middle."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from testbed.bundles import granted, place, place_script, script_of, source, thread_id
from testbed.conversing import WordReader, now_ms, sentence
from uncaged_bundles.errors import RefusedError, StorageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.calls import Call
from uncaged_dispatcher.conversations.held import DEEPEST
from uncaged_dispatcher.conversations.holder import Holder
from uncaged_dispatcher.conversations.live import RequestEvent
from uncaged_dispatcher.conversations.log import ConversationLog
from uncaged_dispatcher.conversations.requests import ConversationRequest
from uncaged_engine.api import Engine
from uncaged_engine.journal import copied

ULID = "01KQXKW0000000000000000001"


class InterruptedResume(Engine):
    """Engine whose `resume` comes late: the request is cancelled before, and every kill that this
    began is over.
    """

    holder: Holder

    def resume(self, text: str, **options: Any) -> ThreadId:
        self.holder.cancel(ULID)
        for other in threading.enumerate():
            if other.name == "kill":
                other.join()
        return super().resume(text, **options)


class FailingKill(Engine):
    """Engine whose first kill fails, as on a full disk."""

    fails = True

    def kill(self, text: str) -> ThreadId:
        if self.fails:
            self.fails = False
            raise StorageError("the disk is full")
        return super().kill(text)


class RecordedResumes(Engine):
    """Engine that notes each `resume`, and refuses it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.resumed: list[str] = []

    def resume(self, text: str, **_options: Any) -> ThreadId:
        self.resumed.append(text)
        raise RefusedError("another process resumed it")


@contextmanager
def held(engine: Engine, conversation: str) -> Iterator[Holder]:
    """Hold a conversation in this process."""
    log = ConversationLog.open(engine.store, conversation, now_ms)
    assert log is not None
    with Holder(engine, log, WordReader(), now_ms) as holder:
        yield holder


@pytest.mark.slow
def test_a_kill_that_fails_is_reported_and_tried_again(engine: Engine, conversation: str) -> None:
    """A cancel whose kill the disk refuses says so; a second cancel kills the thread."""
    events: queue.SimpleQueue[RequestEvent] = queue.SimpleQueue()

    def until(kind: str) -> RequestEvent:
        while (event := events.get(timeout=60))["event"] != kind:
            pass
        return event

    with held(FailingKill(engine.store), conversation) as holder:
        holder.submit(sentence(ULID, "sleeper"), listener=events.put)
        thread = until("thread")["threadId"]
        assert holder.cancel(ULID) == "cancelled_running"
        assert (
            until("problem")["message"] == f"thread {thread} could not be killed: the disk is full"
        )
        assert holder.cancel(ULID) == "cancelled_running"
        assert until("result")["result"]["status"] == "cancelled"
    assert engine.thread(thread).summary.status == "killed"


@pytest.mark.slow
def test_calls_that_a_result_may_not_make_are_named(engine: Engine, conversation: str) -> None:
    """A result that asks for further calls after too many others is settled with that problem."""
    call = {"flow": "count", "params": {"n": 1}}
    body = f'    return {{"success": True, "next": [{call!r}, {call!r}]}}\n    yield\n'
    granted(engine.store, source("shown", body, policy={"flow": {"names": ["count"]}}))
    events: queue.SimpleQueue[RequestEvent] = queue.SimpleQueue()
    last = ConversationRequest(
        id=ULID, call=Call(flow="shown"), parent=thread_id(7), depth=DEEPEST, agreed=True
    )
    with held(engine, conversation) as holder:
        holder.submit(last, listener=events.put)
        while (event := events.get(timeout=60))["event"] != "result":
            pass
    assert event["next"] == []
    assert event["result"]["problems"] == [
        "next: 2 of 2 calls were not made: 16 results in a row have asked for further calls"
    ]


@pytest.mark.slow
def test_a_cancel_during_the_resume_of_a_thread_ends_the_thread(
    engine: Engine, conversation: str
) -> None:
    """A thread without a worker that is cancelled while the next holder resumes it does not run
    on: the request ends as cancelled, and its thread is killed.
    """
    sleeper = source("sleeper", "    yield {'null': {'sleep_s': 600}}\n")
    thread = place(engine.store, sleeper).thread
    assert engine.thread(thread).summary.status == "interrupted"
    late = InterruptedResume(engine.store)
    log = ConversationLog.open(engine.store, conversation, now_ms)
    assert log is not None
    log.request(sentence(ULID, "sleeper"))
    log.thread(ULID, thread, {"flow": "sleeper", "params": {}})
    late.holder = Holder(late, log, WordReader(), now_ms)
    events: queue.SimpleQueue[RequestEvent] = queue.SimpleQueue()
    late.holder.attach(ULID, events.put)
    with late.holder:
        while (event := events.get(timeout=60))["event"] != "result":
            pass
    assert event["result"]["status"] == "cancelled"
    assert engine.thread(thread).summary.status == "killed"


@pytest.mark.parametrize("last", ["note", "answer"])
def test_a_copied_conversation_does_not_resume_its_copied_thread(
    engine: Engine, conversation: str, last: str
) -> None:
    """The store that it was copied from may drive the thread, also with an answer that it has."""
    bundle = granted(engine.store, source("asking", "    yield {'null': {}}\n"))
    thread = place_script(engine.store, bundle, script_of(bundle).control(last, value=1))
    copied.mark(thread.path)
    recorded = RecordedResumes(engine.store)
    log = ConversationLog.open(engine.store, conversation, now_ms)
    assert log is not None
    log.request(sentence(ULID, "asking"))
    log.thread(ULID, thread.thread, {"flow": "asking", "params": {}})
    holder = Holder(recorded, log, WordReader(), now_ms)
    events: queue.SimpleQueue[RequestEvent] = queue.SimpleQueue()
    holder.attach(ULID, events.put)
    with holder:
        while (event := events.get(timeout=60))["event"] != "result":
            pass
    assert recorded.resumed == []
    assert event["result"]["status"] == "interrupted"
