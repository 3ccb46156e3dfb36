"""The queue of a conversation's requests, driven by every order of events."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from testbed.bundles import thread_id
from uncaged_dispatcher.conversations.request_queue import (
    MAX_QUEUED,
    QueueSnapshot,
    RequestQueue,
    SubmitRefusal,
)
from uncaged_dispatcher.conversations.requests import ConversationRequest

NAMES = st.integers(min_value=0, max_value=30)


def request(number: int, *, client_id: str | None = None) -> ConversationRequest:
    return ConversationRequest(id=thread_id(number), text=f"sentence {number}", client_id=client_id)


class QueueMachine(RuleBasedStateMachine):
    """The queue beside a model: the ids that wait, the one that runs, and all that left."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.snapshots: list[QueueSnapshot] = []
        self.waiting: list[str] = []
        self.running: str | None = None
        self.cancelling = False
        self.gone: set[str] = set()
        self.stopping = False
        self.now_ms = 0

    @initialize(left=st.integers(min_value=0, max_value=MAX_QUEUED))
    def open(self, left: int) -> None:
        """A queue begins with what a former holder left."""
        found = [self.next_request() for _ in range(left)]
        self.queue = RequestQueue(found)
        self.waiting = [one.id for one in found]
        self.queue.observe(_fail)
        self.queue.observe(self.snapshots.append)

    def next_request(self) -> ConversationRequest:
        self.number += 1
        return request(self.number, client_id=f"client-{self.number}")

    def name(self, number: int) -> str:
        """One of the ids that were ever used, as ours or as the client's."""
        chosen = 1 + number % max(1, self.number)
        return thread_id(chosen) if number % 2 else f"client-{chosen}"

    def id_of(self, name: str) -> str:
        return thread_id(int(name.removeprefix("client-"))) if name.startswith("c") else name

    @rule(first=st.booleans())
    def submit(self, first: bool) -> None:
        new = self.next_request()
        refusal = self.queue.submit(new, first=first)
        assert refusal == self.expected_refusal()
        if refusal is None:
            self.waiting.insert(0 if first else len(self.waiting), new.id)
        else:
            self.gone.add(new.id)

    @rule()
    def interrupt(self) -> None:
        new = self.next_request()
        refusal, cancelled = self.queue.interrupt(new)
        assert refusal == self.expected_refusal()
        if refusal is not None:
            assert cancelled is None
            self.gone.add(new.id)
            return
        assert cancelled == (None if self.cancelling else self.running)
        self.cancelling = self.running is not None
        self.waiting.insert(0, new.id)

    def expected_refusal(self) -> SubmitRefusal | None:
        if self.stopping:
            return SubmitRefusal(reason="server_stopping")
        if len(self.waiting) >= MAX_QUEUED:
            return SubmitRefusal(reason="queue_full", maximum=100)
        return None

    @rule(number=NAMES)
    def submit_again(self, number: int) -> None:
        """An id of ours or of a client that is in use belongs to one request."""
        id = self.id_of(self.name(number))
        if self.stopping or (id not in self.waiting and id != self.running):
            return
        for copied in (
            ConversationRequest(id=id, text="another"),
            ConversationRequest(id=thread_id(999), text="another", client_id=self.name(number)),
        ):
            assert self.queue.submit(copied) == SubmitRefusal(reason="duplicate_id")

    @rule(number=NAMES)
    def promote(self, number: int) -> None:
        name = self.name(number)
        id = self.id_of(name)
        assert self.queue.promote(name) is (id in self.waiting)
        if id in self.waiting:
            self.waiting.remove(id)
            self.waiting.insert(0, id)

    @rule(number=NAMES)
    def cancel(self, number: int) -> None:
        name = self.name(number)
        id, before = self.id_of(name), self.queue.snapshot()
        found = self.queue.cancel(name)
        if id in self.waiting:
            assert found == "cancelled_queued"
            self.waiting.remove(id)
            self.gone.add(id)
        elif id == self.running:
            assert found == "cancelled_running"
            if self.cancelling:
                assert self.queue.snapshot() == before, "a second cancel changes nothing"
            self.cancelling = True
        else:
            assert found == "not_found"
            assert self.queue.snapshot() == before

    @rule()
    def take(self) -> None:
        taken = self.queue.take()
        if self.running is not None or not self.waiting:
            assert taken is None
        else:
            assert taken is not None
            self.running, self.cancelling = self.waiting.pop(0), False
            assert taken.id == self.running

    @precondition(lambda self: self.running is not None)
    @rule()
    def settle(self) -> None:
        assert self.running is not None
        self.queue.settle(self.running)
        self.gone.add(self.running)
        self.running, self.cancelling = None, False

    @rule(timeout_ms=st.integers(min_value=0, max_value=100))
    def drain(self, timeout_ms: int) -> None:
        self.queue.drain(self.now_ms, timeout_ms)
        if not self.stopping:
            self.stopping, self.stop_at_ms = True, self.now_ms + timeout_ms

    @rule(step_ms=st.integers(min_value=0, max_value=60))
    def expire(self, step_ms: int) -> None:
        self.now_ms += step_ms
        rejected = [one.id for one in self.queue.expire(self.now_ms)]
        if self.stopping and self.now_ms >= self.stop_at_ms:
            assert rejected == self.waiting
            self.gone.update(self.waiting)
            self.waiting = []
        else:
            assert rejected == []

    @invariant()
    def shows_the_model(self) -> None:
        if not hasattr(self, "queue"):
            return
        shown = self.queue.snapshot()
        assert [entry.request.id for entry in shown.queued] == self.waiting
        assert [entry.position for entry in shown.queued] == list(range(1, len(self.waiting) + 1))
        assert (None if shown.running is None else shown.running.request.id) == self.running
        assert shown.running is None or (shown.running.state == "cancelling") == self.cancelling
        assert self.queue.is_idle == (not self.waiting and self.running is None)
        assert shown.stopping == self.stopping

    @invariant()
    def versions_rise_and_no_request_comes_back(self) -> None:
        versions = [one.version for one in self.snapshots]
        assert versions == sorted(set(versions)), "strictly rising"
        for shown in self.snapshots[-1:]:
            listed = {entry.request.id for entry in shown.queued}
            assert not listed & self.gone


def _fail(_snapshot: QueueSnapshot) -> None:
    raise RuntimeError("a bug of an observer")


TestQueue = QueueMachine.TestCase


def test_a_submit_at_the_limit_is_refused_with_the_maximum() -> None:
    """The hundred-and-first queued request is refused; the running one does not count."""
    queue = RequestQueue()
    assert queue.submit(request(0)) is None
    assert queue.take() is not None
    assert [queue.submit(request(number)) for number in range(1, 101)] == [None] * 100
    refusal = queue.submit(request(101))
    assert refusal is not None
    assert refusal.document() == {"ok": False, "error": "queue_full", "maximum": 100}
    assert queue.interrupt(request(102)) == (refusal, None), "the running one goes on"


def test_a_request_can_be_cancelled_by_the_clients_id_alone() -> None:
    """A client that has not heard our id yet cancels by its own."""
    queue = RequestQueue()
    queue.submit(request(1, client_id="mine"))
    assert queue.cancel("mine") == "cancelled_queued"
    assert queue.cancel("mine") == "not_found"
    queue.submit(request(2, client_id="mine"))
    queue.take()
    assert queue.cancel("mine") == "cancelled_running"


def test_an_observer_that_was_removed_sees_nothing_more() -> None:
    """The function that `observe` returns ends the observation, also a second time."""
    queue, seen = RequestQueue(), []
    stop = queue.observe(lambda snapshot: seen.append(snapshot.version))
    queue.submit(request(1))
    stop()
    stop()
    queue.submit(request(2))
    assert seen == [1]


def test_only_the_running_request_settles() -> None:
    """A settle of another request is a bug of the caller."""
    queue = RequestQueue([request(1)])
    with pytest.raises(ValueError, match="does not run"):
        queue.settle(thread_id(1))
