"""Observation of threads: their state is read from the files, without taking the lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest
from testbed.bundles import COUNT, MARKED, granted, place, place_script, script_of, thread_id
from testbed.interleaving import just_before
from testbed.journals import NOW_MS, Script
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.journal import lines, lock
from uncaged_engine.state import observe
from uncaged_engine.state.observe import ThreadSummary, summarise, view

NO_OUTCOME = "(null) was begun and has no outcome yet"
MAYBE_PERFORMED = "(null) was begun and may have been performed"
ASKING = {"null": {"value": 1, "mark": True, "rule": "ask"}}


@pytest.fixture
def bundle(store: Store) -> Bundle:
    return granted(store, COUNT)


def summary(store: Store, bundle: Bundle, script: Script) -> ThreadSummary:
    placed = place_script(store, bundle, script)
    return summarise(store, bundle.hash, placed.thread, placed.path)


def long(script: Script, steps: int = 60) -> Script:
    """More than the window that a listing reads."""
    for seq in range(1, steps + 1):
        script.done(seq)
    return script


STATES: dict[str, tuple[Callable[[Script], Script], str, int, str]] = {
    "started": (lambda s: s, "interrupted", 0, ""),
    "in flight": (lambda s: s.done(1).intent(2), "interrupted", 1, f"step 2 {NO_OUTCOME}"),
    "in flight, and only a person can tell": (
        lambda s: s.intent(1, ASKING),
        "unknown",
        0,
        f"step 1 {MAYBE_PERFORMED}",
    ),
    "left unknown": (
        lambda s: s.intent(1, ASKING).control("unknown", seq=1),
        "unknown",
        0,
        f"step 1 {MAYBE_PERFORMED}",
    ),
    "paused": (lambda s: s.done(1).control("pause"), "paused", 1, ""),
    "paused and resumed": (
        lambda s: s.done(1).control("pause").control("resume"),
        "interrupted",
        1,
        "",
    ),
    "waiting": (lambda s: s.intent(1).control("wait", question="which?"), "waiting", 0, "which?"),
    "waiting for nothing in particular": (lambda s: s.intent(1).control("wait"), "waiting", 0, ""),
    "waiting, then paused": (
        lambda s: s.intent(1).control("wait").control("pause"),
        "paused",
        0,
        "",
    ),
    "answered": (
        lambda s: s.intent(1).control("wait").control("answer", value=1),
        "interrupted",
        0,
        f"step 1 {NO_OUTCOME}",
    ),
    "lacking": (lambda s: s.intent(1).void(1, "environment", "no key"), "paused", 0, "no key"),
    "completed": (
        lambda s: s.done(1).end("completed", result={"success": True, "message": "all done"}),
        "completed",
        1,
        "all done",
    ),
    "failed": (
        lambda s: s.end("failed", error={"kind": "bundle", "message": "boom"}),
        "failed",
        0,
        "boom",
    ),
    "killed in flight": (lambda s: s.done(1).intent(2).void(2).end("killed"), "killed", 1, ""),
    "at its limit": (
        lambda s: s.output(1).end("limit", limit="maxRounds", value=1, message="enough"),
        "limit",
        1,
        "enough",
    ),
    "resumed after an end": (
        lambda s: s.output(1).end("limit", limit="maxRounds").control("resume"),
        "interrupted",
        1,
        "",
    ),
    "killed in a begun effect of rule ask": (
        lambda s: s.done(1).intent(2, ASKING).void(2, begun=True).end("killed"),
        "killed",
        1,
        f"step 2 {MAYBE_PERFORMED}",
    ),
    "killed in one by an older engine": (
        lambda s: s.intent(1, ASKING).void(1, begun=None).end("killed"),
        "killed",
        0,
        f"step 1 {MAYBE_PERFORMED}",
    ),
    "killed before one had begun": (
        lambda s: s.intent(1, ASKING).void(1).end("killed"),
        "killed",
        0,
        "",
    ),
    "killed again before one was asked again": (
        lambda s: (
            s.intent(1, ASKING)
            .void(1, begun=True)
            .end("killed")
            .control("resume")
            .intent(1, ASKING)
            .void(1)
            .end("killed")
        ),
        "killed",
        0,
        f"step 1 {MAYBE_PERFORMED}",
    ),
    "killed after a decision about one": (
        lambda s: (
            s.intent(1, ASKING)
            .void(1, begun=True)
            .end("killed")
            .control("resume", redo=True)
            .end("killed")
        ),
        "killed",
        0,
        "",
    ),
    "at a limit in a begun effect of rule ask": (
        lambda s: (
            s.intent(1, ASKING)
            .void(1, "limit", begun=True)
            .end("limit", limit="maxSeconds", value=1, message="enough")
        ),
        "limit",
        0,
        f"enough; step 1 {MAYBE_PERFORMED}",
    ),
    "lacking in a begun effect of rule ask": (
        lambda s: s.intent(1, ASKING).void(1, "environment", "no key", begun=True),
        "paused",
        0,
        f"no key; step 1 {MAYBE_PERFORMED}",
    ),
    "resumed without a decision by an older engine": (
        lambda s: s.intent(1, ASKING).void(1, begun=None).end("killed").control("resume"),
        "unknown",
        0,
        f"step 1 {MAYBE_PERFORMED}",
    ),
    "killed among sub-steps": (
        lambda s: s.intent(1, {"all": {}}).step(1, sub=0, outcome=1).void(1).end("killed"),
        "killed",
        0,
        "",
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_a_listing_tells_the_state(name: str, store: Store, bundle: Bundle) -> None:
    """From the journal alone; a short one and one that is longer than the window read the same."""
    build, status, steps, message = STATES[name]
    found = summary(store, bundle, build(script_of(bundle)))
    assert (found.status, found.steps, found.message, found.problem) == (
        status,
        steps,
        message,
        None,
    )
    assert (found.name, found.hash) == ("count", bundle.hash)


@pytest.mark.parametrize("name", STATES)
def test_a_listing_of_a_long_journal_is_that_of_a_full_reading(
    name: str, store: Store, bundle: Bundle
) -> None:
    """Reading the last window gives the same as reading everything, for every way in which a
    journal ends.
    """

    class Later(Script):
        """Script whose lines are sixty steps later."""

        def add(self, body: bytes) -> Self:
            return super().add(
                body.replace(b'{"seq":1,', b'{"seq":61,').replace(b'{"seq":2,', b'{"seq":62,')
            )

    begun = long(script_of(bundle))
    later = Later(
        bundle=begun.bundle, thread=begun.thread, sealed=begun.sealed, digest=begun.digest
    )
    script = STATES[name][0](later)
    found = summary(store, bundle, script)
    full = view(
        store, bundle.hash, script.thread, store.data_path(bundle.hash, script.thread)
    ).summary
    assert found == full
    assert bool(found.undecided) == (MAYBE_PERFORMED in found.message)
    assert (found.status, found.steps) == (STATES[name][1], STATES[name][2] + 60)


def test_a_held_lock_means_running_unless_the_end_is_there(store: Store, bundle: Bundle) -> None:
    """A thread whose lock is held is running, unless its journal has an end record."""
    for script, status in (
        (script_of(bundle).done(1), "running"),
        (script_of(bundle).end("completed", result=None), "completed"),
    ):
        placed = place_script(store, bundle, script)
        fd = os.open(placed.path, os.O_RDWR)
        assert lock.take(fd)
        assert summarise(store, bundle.hash, placed.thread, placed.path).status == status
        assert view(store, bundle.hash, placed.thread, placed.path).summary.status == status
        os.close(fd)


def test_a_thread_that_ends_while_it_is_looked_at_is_not_taken_for_a_dead_one(
    store: Store, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is asked for before the size of what is read, or an end that was written in between
    would not be seen.
    """
    script = script_of(bundle)
    for seq in range(1, 60):
        script.done(seq)
    path = place_script(store, bundle, script).path
    assert path.stat().st_size > observe.WINDOW_BYTES
    fd = os.open(path, os.O_RDWR)
    assert lock.take(fd)

    def end() -> None:
        path.write_bytes(script.end("completed", result={}).data)
        os.close(fd)

    just_before(monkeypatch, lock, "is_held", end)
    assert summarise(store, bundle.hash, script.thread, path).status == "completed"


def test_times_come_from_the_journal(store: Store, bundle: Bundle) -> None:
    """A thread's start is the start record's time, its update the last whole line's, whatever is
    behind that.
    """
    script = script_of(bundle).done(1).done(2)
    found = summary(store, bundle, script)
    assert (found.started_ms, found.updated_ms) == (NOW_MS, NOW_MS + 2)
    placed = place_script(store, bundle, script)
    placed.path.write_bytes(script.data + b'{"seq":3,"timestamp":oops,')
    assert summarise(store, bundle.hash, placed.thread, placed.path).updated_ms == NOW_MS + 2


def test_a_torn_tail_is_no_problem_and_damage_is(store: Store, bundle: Bundle) -> None:
    """The next owner cuts a tail; what is corrupt says at which line."""
    script = script_of(bundle).done(1).done(2)
    placed = place_script(store, bundle, script)
    placed.path.write_bytes(script.data + b'{"seq":3,"int')
    assert summarise(store, bundle.hash, placed.thread, placed.path).status == "interrupted"
    placed.path.write_bytes(b"".join([script.sealed[0], b"x\n", *script.sealed[2:]]))
    found = summarise(store, bundle.hash, placed.thread, placed.path)
    assert (found.status, found.steps) == ("corrupt", 0)
    assert found.problem is not None
    assert found.problem.startswith("line 2: ")


@pytest.mark.parametrize(
    "data", [b"", b"\n", bytes(5000), b"not a journal\n" * 500, b'{"format":1}\n']
)
def test_what_cannot_be_read_is_listed_all_the_same(
    data: bytes, store: Store, bundle: Bundle
) -> None:
    """A line of the listing states the problem; the thread's age comes from its id."""
    placed = place(store)
    placed.path.write_bytes(data)
    found = summarise(store, bundle.hash, placed.thread, placed.path)
    assert (found.status, found.started_ms, found.name) == ("corrupt", NOW_MS, "")
    assert found.problem
    with pytest.raises(DamagedError):
        view(store, bundle.hash, placed.thread, placed.path)


def test_a_thread_of_a_bundle_that_is_gone_is_listed(store: Store) -> None:
    """Only the crash rule of an open effect needs the bundle; without it the thread is
    interrupted.
    """
    bundle = granted(store, MARKED)
    script = script_of(bundle).intent(1, ASKING)
    assert summary(store, bundle, script).status == "unknown"
    store.bundle_path(bundle.hash).unlink()
    assert summary(store, bundle, script).status == "interrupted"


def test_a_view_has_every_record_without_its_chain(store: Store, bundle: Bundle) -> None:
    """Records are in the journal's order, the start record apart, and the end record only if no
    resume follows it.
    """
    script = (
        script_of(bundle, prompt="hello").done(1).output(2).end("completed", result={"data": 1})
    )
    placed = place_script(store, bundle, script)
    found = view(store, bundle.hash, placed.thread, placed.path)
    assert found.start["parameters"]["prompt"] == "hello"
    assert [next(iter(record)) for record in found.records] == ["seq", "seq", "seq", "end"]
    assert not any("chain" in record for record in (found.start, *found.records))
    assert found.end == found.records[-1]
    resumed = place_script(store, bundle, script.control("resume"))
    assert view(store, bundle.hash, resumed.thread, resumed.path).end is None


def test_a_view_puts_blobs_back(store: Store, bundle: Bundle) -> None:
    """The content of a blob is shown in the place of its note."""
    from uncaged_engine.journal.blobs import BlobDirectory

    script = script_of(bundle).intent(1)
    script.add(lines.step(1, BlobDirectory(store.blobs).spill({"outcome": "o" * 10}), NOW_MS))
    placed = place_script(store, bundle, script)
    assert view(store, bundle.hash, placed.thread, placed.path).records[1]["outcome"] == "o" * 10


@pytest.fixture
def many(store: Store, bundle: Bundle) -> list[Path]:
    return [
        place_script(store, bundle, script_of(bundle, number=number).done(1)).path
        for number in range(5)
    ]


def test_one_bad_thread_hides_no_other(many: list[Path], store: Store) -> None:
    """A listing has a line for each."""
    many[2].write_bytes(b"\xff" * 9000)
    found = [
        summarise(store, *place) for place in sorted(store.find_threads(), key=lambda one: one[1])
    ]
    assert [one.thread_id for one in found] == [thread_id(number) for number in range(5)]
    assert [one.status for one in found] == [
        "interrupted",
        "interrupted",
        "corrupt",
        "interrupted",
        "interrupted",
    ]
