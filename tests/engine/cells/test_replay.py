"""Replay of a generator up to the end of its journal, and the proof that it yielded the same
effects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import COUNT, PLANNED, script_of
from testbed.journals import NOW_MS, Script
from uncaged_bundles.errors import ReplayError
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.cells.cell import Cell
from uncaged_engine.cells.replay import Replay, start_body
from uncaged_engine.cells.reply import BundleReply
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.journal import lines
from uncaged_engine.journal.blobs import BlobDirectory, Blobs
from uncaged_engine.journal.recover import recover
from uncaged_engine.sandbox.mechanism import choose

DEADLINE_S = 10.0


@pytest.fixture(scope="module")
def counting() -> Iterator[Cell]:
    cell = Cell.start(read_bundle(COUNT, KNOWN), choose())
    yield cell
    cell.close()


@pytest.fixture(scope="module")
def planned() -> Iterator[Cell]:
    cell = Cell.start(read_bundle(PLANNED, KNOWN), choose())
    yield cell
    cell.close()


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return BlobDirectory(tmp_path)


def bundle_of(source: bytes) -> Bundle:
    return read_bundle(source, KNOWN)


def count_script(n: int, done: int) -> Script:
    script = script_of(bundle_of(COUNT), params={"n": n})
    for seq in range(1, done + 1):
        script.done(seq)
    return script


def replay_of(script: Script, blobs: Blobs, *, trusted: bool = False) -> Replay:
    history = recover(script.data, script.bundle, script.thread)
    return Replay(history, blobs.expand_record(history.start), blobs, trusted=trusted)


def run(script: Script, cell: Cell, blobs: Blobs) -> BundleReply | None:
    return replay_of(script, blobs).run(cell, 1, deadline_s=DEADLINE_S)


def run_stepwise(script: Script, cell: Cell, blobs: Blobs) -> BundleReply:
    return replay_of(script, blobs).run_stepwise(cell, 1, script.data, deadline_s=DEADLINE_S)


@pytest.mark.parametrize("done", [0, 1, 4, 300])
def test_a_replay_leads_to_the_next_effect(done: int, counting: Cell, blobs: Blobs) -> None:
    """After the recorded outcomes the bundle yields what it would have yielded, without one effect
    being performed.
    """
    script = count_script(done + 1, done)
    expected = BundleReply("effect", b'{"null":{"value":%d}}' % (done + 1))
    assert run(script, counting, blobs) == expected
    assert run_stepwise(script, counting, blobs) == expected


def test_a_replay_leads_to_the_end(counting: Cell, blobs: Blobs) -> None:
    """All outcomes recorded: the result, as it was."""
    said = run(count_script(3, 3), counting, blobs)
    assert said == BundleReply("return", b'{"success":true,"message":"sum 6"}')


def test_outputs_failures_and_errors_replay(planned: Cell, blobs: Blobs) -> None:
    """A bundle's own step comes back as its record, a failure is thrown in, an uncaught error is
    the last word.
    """
    plan = [
        {"output": {"meta": {"b": 1, "a": 2}, "content": "é\n", "role": "r"}},
        {"null": {"fail": "no"}},
        "raise",
    ]
    script = script_of(bundle_of(PLANNED), params={"plan": plan})
    script.output(1, "r", "é\n", b=1, a=2).done(2, plan[1], error={"kind": "null", "message": "no"})
    said = run(script, planned, blobs)
    assert said is not None
    assert said.word == "raise"
    assert json.loads(said.body)["message"] == "as planned"
    assert run_stepwise(script, planned, blobs) == said


def edited() -> Script:
    """A journal with another second effect, sealed all the same."""
    changed = script_of(bundle_of(COUNT), params={"n": 5})
    changed.done(1).done(2, {"null": {"value": 99}}, outcome=2).done(3)
    return changed


def test_an_edited_and_resealed_effect_is_found(counting: Cell, blobs: Blobs) -> None:
    """The chain holds, the replay does not: the quick one says that something differs, the slow one
    what.
    """
    script = edited()
    assert run(script, counting, blobs) is None
    with pytest.raises(ReplayError) as raised:
        run_stepwise(script, counting, blobs)
    assert (
        str(raised.value)
        == 'step 2: the journal holds {"null":{"value":99}}, the bundle now yields {"null":{"value":2}}'
    )


def test_an_edited_outcome_shows_in_what_follows(counting: Cell, blobs: Blobs) -> None:
    """With another outcome this bundle gives another result, so a journal that kept its end would
    not verify.
    """
    script = script_of(bundle_of(COUNT), params={"n": 1})
    script.done(1, outcome=41)
    assert run(script, counting, blobs) == BundleReply(
        "return", b'{"success":true,"message":"sum 41"}'
    )


@pytest.mark.parametrize(("n", "done"), [(2, 3), (0, 1)])
def test_a_bundle_that_ends_early_is_found(n: int, done: int, counting: Cell, blobs: Blobs) -> None:
    """The journal holds more steps than this code yields."""
    script = count_script(n, done)
    assert run(script, counting, blobs) is None
    with pytest.raises(
        ReplayError, match=f"step {n + 1}: the journal holds .* the bundle now ends with return"
    ):
        run_stepwise(script, counting, blobs)


def test_the_open_effect_must_fit_too(counting: Cell, blobs: Blobs) -> None:
    """The open intent is part of what the bundle has to yield; a difference is tried in a cell of
    its own before it is reported.
    """
    fits = count_script(3, 1).intent(2)
    assert run(fits, counting, blobs) == BundleReply("effect", b'{"null":{"value":2}}')
    other = count_script(3, 1).intent(2, {"null": {"value": 3}})
    assert run(other, counting, blobs) is None
    ended = count_script(1, 1).intent(2)
    assert run(ended, counting, blobs) is None
    unbegun = count_script(1, 0).intent(1, {"null": {"value": 3}})
    assert run(unbegun, counting, blobs) is None


def test_contents_in_blobs_replay(planned: Cell, blobs: Blobs) -> None:
    """Effect, outcome and parameters that are too large for a line come back whole."""
    big = {"null": {"value": "b" * (lines.SPILL_BYTES + 1)}}
    parameters = script_of(bundle_of(PLANNED), params={"plan": [big, {"null": {}}]})
    start = json.loads(parameters.sealed[0])
    spilt: dict[str, Any] = blobs.spill({"parameters": start["parameters"]})
    script = script_of(bundle_of(PLANNED), **spilt)
    script.add(lines.step(1, blobs.spill({"intent": big}), NOW_MS)).add(
        lines.step(1, blobs.spill({"outcome": "o" * 600_000}), NOW_MS)
    )
    assert max(map(len, script.sealed)) < 1000
    assert run(script, planned, blobs) == BundleReply("effect", b'{"null":{}}')
    assert run_stepwise(script, planned, blobs) == BundleReply("effect", b'{"null":{}}')


def test_handed_over_steps_are_input_and_the_rest_is_replayed(planned: Cell, blobs: Blobs) -> None:
    """The first steps of a fork onto another hash are `input.steps`; what was performed since is
    answered from the journal.
    """
    plan = [{"null": {"value": "new"}}, {"null": {"value": "next"}}]
    source = {"threadId": "x", "hash": "y", "seq": 2, "chain": "", "handedOver": 2}
    script = script_of(bundle_of(PLANNED), params={"plan": plan}, forkFrom=source)
    script.done(1).output(2).done(3, plan[0], outcome="heard")
    replay = replay_of(script, blobs)
    assert replay.handed_over == 2
    assert replay.run(planned, 1, deadline_s=DEADLINE_S) == BundleReply(
        "effect", b'{"null":{"value":"next"}}'
    )
    body = json.loads(
        start_body(
            json.loads(script.sealed[0]),
            recover(script.data, script.bundle, script.thread).steps[:2],
        )
    )
    assert [step["seq"] for step in body["input"]["steps"]] == [1, 2]
    assert all("chain" not in step for step in body["input"]["steps"])
    assert body["input"]["prompt"] == "do it"
    assert set(body["options"]) == {"threadId", "startedAt", "seed"}


def test_a_trusted_bundle_is_not_replayed(blobs: Blobs) -> None:
    """A trusted bundle gets all its steps handed over."""
    assert replay_of(count_script(5, 3), blobs, trusted=True).handed_over == 3


def test_many_slots_do_not_disturb_each_other(counting: Cell, blobs: Blobs) -> None:
    """Several threads of one bundle, each at its own place, in one process."""
    for slot, done in enumerate((5, 0, 3), start=10):
        replay_of(count_script(9, done), blobs).run(counting, slot, deadline_s=DEADLINE_S)
    for slot, done in enumerate((5, 0, 3), start=10):
        line = count_script(9, done + 1).sealed[-1]
        assert counting.send_outcome(
            slot, done + 1, line, deadline_s=DEADLINE_S
        ).body == b'{"null":{"value":%d}}' % (done + 2)
