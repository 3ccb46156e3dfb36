"""Several effects at once: their number, their failures, and kinds that cannot be combined."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from testbed.roles import EffectHarness, role_bundle
from uncaged_bundles.storage.store import Store
from uncaged_effects.all import AllHandler
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void, Wait

NOT_BEGUN = {"error": {"kind": "not-begun", "message": "an effect beside it failed first"}}
Sub = Callable[[int, str, object], Outcome]


@pytest.fixture
def harness(store: Store) -> EffectHarness:
    return EffectHarness(
        store=store,
        bundle=role_bundle(policy={"all": {}, "null": {}, "http": {}}),
        start={},
        environment={},
    )


def effects(count: int) -> list[Mapping[str, object]]:
    return [{"null": {"value": number}} for number in range(count)]


def perform(
    harness: EffectHarness,
    sub: Sub,
    body: object,
    done: Mapping[int, Mapping[str, object]] | None = None,
) -> Outcome:
    return AllHandler().perform(
        body, replace(replace(harness, part=sub).context(1), done=done or {})
    )


def value(index: int, _kind: str, _body: object) -> Outcome:
    return Failure.of("null", "no") if index == 1 else Answer(fields={"outcome": index})


def test_one_failure_hides_no_result_unless_it_shall(harness: EffectHarness) -> None:
    """Effects after a failure are performed; with `stop` none is begun after it, and each of the
    rest says so.
    """
    failed = {"error": {"kind": "null", "message": "no"}}
    assert perform(harness, value, {"effects": effects(3)}) == Answer(
        fields={"outcome": [{"outcome": 0}, failed, {"outcome": 2}]}
    )
    stopped = perform(harness, value, {"effects": effects(4), "limit": 1, "onFailure": "stop"})
    assert stopped == Answer(fields={"outcome": [{"outcome": 0}, failed, NOT_BEGUN, NOT_BEGUN]})


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_as_many_run_at_once_as_the_limit_says(harness: EffectHarness, limit: int) -> None:
    """The limit is reached and never exceeded."""
    lock, together = threading.Lock(), threading.Barrier(limit)
    running, most = 0, 0

    def sub(_index: int, _kind: str, _body: object) -> Outcome:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(60)
        with lock:
            running -= 1
        return Answer(fields={"outcome": None})

    perform(harness, sub, {"effects": effects(limit * 3), "limit": limit})
    assert most == limit


def test_what_has_a_line_is_not_performed_again(harness: EffectHarness) -> None:
    """Effects without a line are performed after a crash; the answers are in order."""
    performed: list[int] = []

    def sub(index: int, _kind: str, _body: object) -> Outcome:
        performed.append(index)
        return Answer(fields={"outcome": "new"})

    done = {
        0: {"seq": 1, "sub": 0, "outcome": "old"},
        2: {"seq": 1, "sub": 2, "error": {"kind": "null", "message": "no"}},
    }
    outcome = perform(harness, sub, {"effects": effects(3), "limit": 1}, done=done)
    assert outcome == Answer(
        fields={
            "outcome": [
                {"outcome": "old"},
                {"outcome": "new"},
                {"error": {"kind": "null", "message": "no"}},
            ]
        }
    )
    assert performed == [1]


def test_what_the_bundle_never_sees_ends_all(harness: EffectHarness) -> None:
    """A lack of the machine, or a kill: nothing more is begun."""
    begun: list[int] = []

    def lacks(index: int, _kind: str, _body: object) -> Outcome:
        begun.append(index)
        return Void(word="environment", message="nothing there")

    assert perform(harness, lacks, {"effects": effects(3), "limit": 1}) == Void(
        word="environment", message="nothing there", begun=False
    )
    assert begun == [0]
    harness.cancel.request()
    killed = perform(harness, value, {"effects": effects(3)})
    assert isinstance(killed, Void)
    assert killed.word == "killed"


def test_a_person_cannot_be_waited_for_inside(harness: EffectHarness) -> None:
    """An effect that turns out to wait is that effect's error."""
    outcome = perform(
        harness, lambda *_: Wait(details={"question": "Why?"}), {"effects": effects(1)}
    )
    assert isinstance(outcome, Answer)
    assert "waits for a person" in str(outcome.fields["outcome"])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "all: must be a mapping"),
        ({"effects": {}}, "all.effects: must be a list"),
        ({"effects": [], "at_once": 3}, "all.at_once: unknown key"),
        ({"effects": [], "limit": 0}, "all.limit: must be a whole number"),
        ({"effects": [], "limit": 65}, "all.limit: must be a whole number"),
        ({"effects": [], "limit": True}, "all.limit: must be a whole number"),
        ({"effects": [], "onFailure": "panic"}, "is not one of wait, stop"),
        ({"effects": [5]}, "all.effects[0]: must be a mapping with exactly one key"),
        (
            {"effects": [{"null": {}, "now": {}}]},
            "all.effects[0]: must be a mapping with exactly one key",
        ),
        ({"effects": [{}] * 10_001}, "10,000 effects are the most"),
        *(
            ({"effects": [{"null": {}}, {kind: {}}]}, f"effects[1]: {kind} cannot be inside all")
            for kind in ("role", "ask", "output", "all")
        ),
    ],
)
def test_a_bad_body_is_a_failure(
    body: Mapping[str, object], words: str, harness: EffectHarness
) -> None:
    """The bundle's author reads it; nothing is performed."""
    outcome = perform(harness, value, body)
    assert isinstance(outcome, Failure)
    assert words in str(outcome.error["message"])


def test_after_a_crash_the_most_careful_effect_decides(harness: EffectHarness) -> None:
    """An effect that the policy does not allow was not performed and does not count."""
    rule = AllHandler().rule
    reading, writing = {"http": {"url": "u"}}, {"http": {"method": "POST", "url": "u"}}
    assert rule({"effects": [*effects(2), reading]}, harness.bundle) == "repeat"
    assert rule({"effects": [*effects(2), writing]}, harness.bundle) == "ask"
    assert (
        rule({"effects": [{"teleport": {}}, {"script": {"body": "x"}}]}, harness.bundle) == "repeat"
    )
    assert rule("nonsense", harness.bundle) == "repeat"
