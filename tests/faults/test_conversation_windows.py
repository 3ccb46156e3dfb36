"""The holder of a conversation dies in each window that its code names; the next one completes the
request exactly once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from testbed.bundles import MARKED, granted, source, thread_id
from testbed.conversing import agree, now_ms, sentence, session
from testbed.foreground import at_window, environment
from testbed.processes import end, workers_of
from testbed.steering import intent_of, marks, settle, wait_for
from testbed.windows import window
from uncaged_dispatcher.conversations.catalog import current_conversation
from uncaged_dispatcher.conversations.live import NO_CALLER
from uncaged_dispatcher.conversations.log import ConversationLog, read_records, read_state
from uncaged_engine.api import Engine

pytestmark = pytest.mark.slow

UNSTARTED = "the thread's id is in the log, and there is no thread; the next holder starts it"
UNFOLLOWED = "the thread runs and is not followed; the next holder follows it"
UNRECORDED = "the thread has ended, and its result is not in the log; the next holder records it"
UNANSWERED = "the thread has the answer, and the log has not; the next holder records it"
CHOOSING = source(
    "choosing",
    """
    colour = yield {"ask": {"question": "which?", "choices": ["red", "blue"]}}
    return {"success": True, "message": colour}
""",
    policy={"ask": {}},
)


@pytest.fixture
def conversation(engine: Engine) -> str:
    """A new conversation; the flow `marked` leaves a mark outside for each effect."""
    granted(engine.store, MARKED)
    return current_conversation(engine.store, now_ms())


def die(
    engine: Engine,
    conversation: str,
    text: str,
    *,
    request: int = 1,
    words: Sequence[str] = ("marked 5",),
) -> list[dict[str, Any]]:
    """Submit in a process that dies in a window; returns the events that it had shown."""
    python = at_window(window(text), "testbed.conversing")
    command = [sys.executable, *python, str(engine.store.root), conversation]
    done = subprocess.run(
        [*command, thread_id(request), *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == -9, (done.returncode, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def next_holder(engine: Engine, conversation: str) -> list[dict[str, Any]]:
    """Another process's request in the conversation; returns all results of the log."""
    request = sentence(thread_id(2), "marked 2")
    events = list(session(engine, conversation).run(request, NO_CALLER, agree))
    assert events[-1]["result"]["message"] == "2 answers"
    return [one for one in read_records(engine.store, conversation) if "result" in one]


def check_completed_once(engine: Engine, conversation: str, *, repeated: int | None = None) -> None:
    """The first request has one thread, one result, and each of its effects was performed once.

    repeated: an effect that may have been performed a second time.
    """
    results = next_holder(engine, conversation)
    assert [one["of"] for one in results] == [thread_id(1), thread_id(2)]
    assert results[0]["result"]["message"] == "5 answers"
    thread = results[0]["result"]["threadId"]
    performed = marks(engine, thread)
    assert list(dict.fromkeys(performed)) == [1, 2, 3, 4, 5]
    assert [seq for seq in (1, 2, 3, 4, 5) if performed.count(seq) > 1] in ([], [repeated])
    assert len(engine.threads()) == 2
    assert read_state(engine.store, conversation).open == []


def test_the_holder_dies_before_it_starts_the_thread(engine: Engine, conversation: str) -> None:
    """The id is in the log and no thread is in the store: the next holder starts it, under this
    id.
    """
    die(engine, conversation, UNSTARTED)
    assert engine.threads() == []
    [left] = read_state(engine.store, conversation).open
    assert left.thread is not None
    check_completed_once(engine, conversation)
    assert left.thread["threadId"] in {one.thread_id for one in engine.threads()}


def test_the_holder_dies_before_it_follows_the_thread(engine: Engine, conversation: str) -> None:
    """The thread goes on without a holder, and the next one follows it."""
    die(engine, conversation, UNFOLLOWED)
    [thread] = engine.threads()
    check_completed_once(engine, conversation)
    assert thread.thread_id in {one.thread_id for one in engine.threads()}


def test_the_worker_dies_with_the_holder(engine: Engine, conversation: str) -> None:
    """The thread is interrupted: the next holder resumes it. The effect that was in flight is of
    the rule `repeat`, and no other is performed again.
    """
    die(engine, conversation, UNFOLLOWED)
    [thread] = engine.threads()
    assert end([one.pid for one in workers_of(engine.store.root)]) == []
    in_flight = engine.thread(thread.thread_id).records[-1].get("seq")
    check_completed_once(engine, conversation, repeated=in_flight)
    assert engine.verify(thread.thread_id).ok


def test_the_holder_dies_before_it_records_the_result(engine: Engine, conversation: str) -> None:
    """The thread has ended and the log does not say so: the next holder records the result."""
    die(engine, conversation, UNRECORDED)
    [thread] = engine.threads()
    assert thread.status == "completed"
    assert [list(one)[1] for one in read_records(engine.store, conversation)][-1] == "thread"
    check_completed_once(engine, conversation)


def test_three_holders_die_one_after_the_other(engine: Engine, conversation: str) -> None:
    """Each dies in the next window of the same request, which the fourth completes."""
    die(engine, conversation, UNSTARTED)
    die(engine, conversation, UNFOLLOWED)
    die(engine, conversation, UNRECORDED)
    check_completed_once(engine, conversation)


def test_a_cancel_outlives_the_holder(engine: Engine, conversation: str) -> None:
    """A holder that was killed with a cancel in its log leaves the kill to the next one."""
    granted(
        engine.store,
        MARKED.replace(b"'name': 'marked'", b"'name': 'sleeper'").replace(
            b'"mark": True', b'"sleep_s": 600'
        ),
    )
    command = [sys.executable, "-m", "testbed.conversing", str(engine.store.root), conversation]
    with subprocess.Popen(
        [*command, thread_id(1), "sleeper 1"], env=environment(), stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        thread = next(
            event["threadId"] for event in map(json.loads, holder.stdout) if "threadId" in event
        )
        wait_for(engine, thread, intent_of(1))
        holder.kill()

    log = ConversationLog.open(engine.store, conversation, now_ms)
    assert log is not None
    log.cancel(thread_id(1), "cancel")
    log.close()
    results = next_holder(engine, conversation)
    assert [one["result"]["status"] for one in results] == ["cancelled", "completed"]
    assert settle(engine, thread)["status"] == "killed"


def test_the_holder_dies_after_it_answered_a_thread(engine: Engine, conversation: str) -> None:
    """The thread goes on with the answer; the next holder records it, and asks nothing again."""
    granted(engine.store, CHOOSING)
    events = die(engine, conversation, UNANSWERED, words=("choosing", "agree"))
    assert events[-1]["event"] == "question"
    results = next_holder(engine, conversation)
    assert [one["result"]["message"] for one in results] == ["red", "2 answers"]
    records = list(read_records(engine.store, conversation))
    assert len([one for one in records if "question" in one]) == 1
    assert [one["answer"] for one in records if "answer" in one] == [{"value": "red"}]
