"""Which spans a thread sends, and when, without a worker."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

import pytest
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.door.observing import InterruptedTry, ObservedEffect, ObservedThread
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void, Wait
from uncaged_engine.settings.config import Config
from uncaged_telemetry import ids
from uncaged_telemetry.spans import FinishedSpan
from uncaged_telemetry.thread import ThreadTelemetry

THREAD = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS")
PARENT = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRT")
START_MS = 1_714_963_200_000


class SentSpans:
    """Sender that keeps the spans."""

    sends = True

    def __init__(self) -> None:
        self.spans: list[FinishedSpan] = []

    def send(self, finished: FinishedSpan) -> None:
        self.spans.append(finished)

    def headers(self, span: int) -> Mapping[str, str]:
        return {"traceparent": f"{span:x}"}

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]


def begun(
    sent: SentSpans,
    interrupted: InterruptedTry | None = None,
    origin: Mapping[str, object] | None = None,
) -> ThreadTelemetry:
    seconds = count(START_MS // 1000 + 60)
    return ThreadTelemetry(
        ObservedThread(
            thread_id=THREAD,
            hash=BundleHash("C9NMV6V2TQT81"),
            start={"name": "echo", "timestamp": START_MS, **(origin or {})},
            steps=0,
            has_roles=False,
            config=Config(),
            environment={},
            interrupted=interrupted,
        ),
        sent,
        None,
        content=False,
        clock_ns=lambda: next(seconds) * 1_000_000_000,
    )


def effect(
    seq: int = 1, *, kind: str = "null", part: int | None = None, attempt: int = 1
) -> ObservedEffect:
    return ObservedEffect(
        seq=seq,
        part=part,
        kind=kind,
        body={},
        attempt=attempt,
        intended_ms=START_MS + 1000,
        child=None,
    )


LEFT: list[tuple[Outcome, str, list[str]]] = [
    (Answer(fields={"outcome": 1}), "completed", ["null", "drive", "flow echo"]),
    (Failure.of("effect", "no"), "failed", ["null", "drive", "flow echo"]),
    (Void(word="environment", message="no disk"), "paused", ["attempt 1", "drive"]),
    (Wait(details={}), "waiting", ["attempt 1", "drive"]),
    (Void(word="killed", message=""), "killed", ["attempt 1", "drive", "null", "flow echo"]),
    (Void(word="limit", message=""), "limit", ["attempt 1", "drive", "null", "flow echo"]),
]


@pytest.mark.parametrize(("outcome", "word", "names"), LEFT, ids=[word for _, word, _ in LEFT])
def test_a_span_is_sent_by_whom_writes_its_end(
    outcome: Outcome, word: str, names: list[str]
) -> None:
    """A thread's span follows its end record, a step's its outcome or that end; a thread that is
    left without an end has sent the attempt.
    """
    sent = SentSpans()
    thread = begun(sent)
    thread.effect(effect()).done(outcome)
    thread.left(word, {"end": word}, 1)
    assert sent.names == names
    failed = {span.name for span in sent.spans if span.error}
    assert ("flow echo" in failed) == (word in ("failed", "killed", "limit"))


def test_the_parts_of_an_effect_end_with_the_thread() -> None:
    """No attempt is without its step's span: a kill ends the effect and its open parts."""
    sent = SentSpans()
    thread = begun(sent)
    whole = thread.effect(effect(kind="all"))
    thread.effect(effect(part=0)).done(Answer(fields={"outcome": 1}))
    thread.effect(effect(part=1)).done(Void(word="killed", message=""))
    whole.done(Void(word="killed", message=""))
    thread.left("killed", {"end": "killed"}, 0)
    known = {span.span for span in sent.spans}
    assert sorted(sent.names) == sorted(
        ["null", "attempt 1", "attempt 1", "drive", "all", "null", "flow echo"]
    )
    assert {span.parent for span in sent.spans} - {None} <= known


def test_attempts_follow_one_another() -> None:
    """Each attempt is a span from its begin to the next, with the kind of what was wrong; the
    texts of errors are left out.
    """
    sent = SentSpans()
    observed = begun(sent).effect(effect(attempt=2))
    assert observed.headers() == {"traceparent": f"{ids.attempt_span_id(THREAD, 1, None, 2):x}"}
    observed.attempt(3, {"because": "retry", "error": {"kind": "timeout", "message": "secret"}})
    observed.attempt(4, {"answer": "secret", "problem": "secret"})
    observed.done(Failure.of("extraction", "secret"))
    assert [(span.name, span.error) for span in sent.spans] == [
        ("attempt 2", "timeout"),
        ("attempt 3", "unusable"),
        ("attempt 4", "extraction"),
        ("null", "extraction"),
    ]
    assert [span.span for span in sent.spans[:3]] == [
        ids.attempt_span_id(THREAD, 1, None, number) for number in (2, 3, 4)
    ]
    assert {span.parent for span in sent.spans[:3]} == {sent.spans[3].span}
    assert sent.spans[0].end_ns < sent.spans[1].end_ns < sent.spans[2].end_ns
    assert "secret" not in repr(sent.spans)


def test_the_attempt_of_a_dead_worker_is_sent_by_the_next() -> None:
    """The span of the attempt that was cut off has the times of the journal's lines."""
    sent = SentSpans()
    lost = InterruptedTry(seq=3, attempt=2, begun_ms=START_MS + 10, last_ms=START_MS + 20)
    begun(sent, lost)
    [span] = sent.spans
    assert (span.name, span.error) == ("attempt 2", "interrupted")
    assert span.span == ids.attempt_span_id(THREAD, 3, None, 2)
    assert span.parent == ids.step_span_id(THREAD, 3)
    assert (span.end_ns - span.begin_ns) == 10_000_000


@pytest.mark.parametrize(
    ("start", "span", "relation"),
    [
        ({"parent": {"threadId": PARENT, "seq": 4}}, ids.step_span_id(PARENT, 4), "parent"),
        ({"forkFrom": {"threadId": PARENT, "seq": 2}}, ids.step_span_id(PARENT, 2), "source"),
        ({"forkFrom": {"threadId": PARENT, "seq": 0}}, ids.thread_span_id(PARENT), "source"),
    ],
)
def test_a_thread_is_linked_to_its_origin(
    start: dict[str, object], span: int, relation: str
) -> None:
    """The link is to the step; a fork without steps is linked to its source's own span."""
    sent = SentSpans()
    begun(sent, origin=start).left(
        "completed", {"end": "completed", "result": {"success": False}}, 0
    )
    root = sent.spans[-1]
    [link] = root.links
    assert (link.thread, link.span, link.relation) == (PARENT, span, relation)
    assert root.error == "unsuccessful"
    assert root.begin_ns == START_MS * 1_000_000


def test_outputs_and_refusals_are_steps() -> None:
    """A step without an effect has a span without texts."""
    sent = SentSpans()
    thread = begun(sent)
    thread.step(1, {"seq": 1, "role": "report", "content": "secret", "meta": {}, "by": "bundle"})
    thread.step(2, {"seq": 2, "error": {"kind": "policy", "message": "secret"}})
    assert [(span.name, span.error) for span in sent.spans] == [
        ("output", ""),
        ("refused", "policy"),
    ]
    assert "secret" not in repr(sent.spans)
