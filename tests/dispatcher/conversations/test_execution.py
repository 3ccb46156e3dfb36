"""Execution of a request that a former holder left in the middle."""

from __future__ import annotations

import queue
import threading
from typing import Any

import pytest
from testbed.bundles import place, source
from testbed.conversing import WordReader, now_ms, sentence
from uncaged_bundles.ids import ThreadId
from uncaged_dispatcher.conversations.holder import Holder
from uncaged_dispatcher.conversations.live import RequestEvent
from uncaged_dispatcher.conversations.log import ConversationLog
from uncaged_engine.api import Engine

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
