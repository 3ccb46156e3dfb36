"""Replay of a flow's past threads with another version, without performing any effect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from testbed.bundles import COUNT, Placed, granted, place_script, script_of, source
from testbed.journals import Script
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.journal import archive, lock
from uncaged_engine.sandbox.mechanism import choose
from uncaged_engine.threads.regression import ReplayCheck, check, find_past

pytestmark = pytest.mark.slow

SAME = COUNT + b"\n# another version\n"


def past(store: Store, number: int, n: int = 3) -> Placed:
    """A thread of `count` that did n of its steps and ended well."""
    return place_script(store, granted(store, COUNT), counted(store, number, n))


def counted(store: Store, number: int, n: int) -> Script:
    script = script_of(granted(store, COUNT), number=number, params={"n": n})
    for seq in range(1, n + 1):
        script.done(seq)
    return script.end("completed", result={"success": True, "message": f"sum {n * (n + 1) // 2}"})


def against(store: Store, text: bytes, deadline_s: float = 20) -> dict[str, ReplayCheck]:
    threads = find_past(store, "count")
    found = check(threads, read_bundle(text, KNOWN), choose(), deadline_s=deadline_s)
    return {one.thread_id: one for one in found}


def test_every_past_thread_is_told_of(store: Store) -> None:
    """Identical ones, archived ones too, and the first step of those that part, with both
    effects.
    """
    plain, packed, long = past(store, 1), past(store, 2), past(store, 3, n=5)
    archive.compress(packed.path)
    found = against(store, SAME)
    assert {one.identical for one in found.values()} == {True}
    assert [found[one.thread].steps for one in (plain, packed, long)] == [3, 3, 5]
    other = against(store, COUNT.replace(b'{"value": number}', b'{"value": min(number, 4)}'))
    assert [other[one.thread].identical for one in (plain, packed, long)] == [True, True, False]
    assert (other[long.thread].step, other[long.thread].yielded) == (5, '{"null":{"value":4}}')


def test_an_end_before_and_after_is_a_difference(store: Store) -> None:
    """A version that stops earlier, goes on, or says something else at its end."""
    thread = past(store, 1).thread
    assert against(store, COUNT.replace(b"+ 1):", b"):"))[thread].yielded.startswith("return ")
    longer = against(store, COUNT.replace(b"+ 1):", b"+ 2):"))[thread]
    assert (longer.identical, longer.step) == (False, 4)
    assert (
        "the bundle now with return"
        in against(store, COUNT.replace(b'"sum ', b'"total '))[thread].message
    )


@pytest.mark.parametrize(
    ("end", "succeeds"),
    [
        ({"error": {"kind": "bundle", "type": "ValueError", "message": "no"}}, True),
        ({"result": {"success": False, "message": "no"}}, True),
        ({"result": {"success": True, "message": "other"}}, False),
    ],
)
def test_a_thread_that_failed_may_succeed_now(
    store: Store, end: dict[str, object], succeeds: bool
) -> None:
    """A version that ends a failed thread with success, at the same step or earlier, differs for
    the better; a failure instead does not.
    """
    bundle = granted(store, COUNT)
    script = script_of(bundle, number=1, params={"n": 2}).done(1).done(2)
    script.end("failed" if "error" in end else "completed", **end)
    thread = place_script(store, bundle, script).thread
    earlier = COUNT.replace(b"+ 1):", b"):")
    found = [against(store, text)[thread] for text in (SAME, earlier)]
    assert [(one.identical, one.succeeds_now) for one in found] == [(False, succeeds)] * 2
    failing = COUNT.replace(b'"success": True', b'"success": False')
    assert not against(store, failing)[thread].succeeds_now


def test_what_cannot_be_a_past_is_left_out(store: Store) -> None:
    """Threads of other flows, running threads and unreadable journals are left out, and hide no
    other thread.
    """
    good, running, corrupt, broken = (past(store, number) for number in range(1, 5))
    other = granted(store, source("other", '    yield {"null": {}}\n'))
    place_script(store, other, script_of(other, number=5))
    corrupt.path.write_bytes(corrupt.path.read_bytes().replace(b'"outcome":1', b'"outcome":9'))
    broken.path.write_bytes(b"nothing of a journal\n")
    fd = os.open(running.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        assert lock.take(fd)
        assert [one.thread_id for one in find_past(store, "count")] == [good.thread]
        assert [*against(store, SAME)] == [good.thread]
    finally:
        os.close(fd)


def test_a_version_that_hangs_or_dies_hides_no_other_thread(store: Store) -> None:
    """A thread that ends the sandbox process has the reason in its result; the next thread gets a
    new process.
    """
    first, second, third = past(store, 1, n=1), past(store, 2, n=2), past(store, 3, n=1)
    hangs = COUNT.replace(b"        total +=", b"        while number == 2: pass\n        total +=")
    found = against(store, hangs, deadline_s=0.5)
    assert [found[one.thread].identical for one in (first, second, third)] == [True, False, True]
    assert "the bundle gave no answer: deadline" in found[second.thread].message


def test_a_missing_blob_is_that_threads_problem(store: Store) -> None:
    """The other threads are checked as usual."""
    good = past(store, 1)
    bundle = granted(store, COUNT)
    lost = script_of(bundle, number=2, params={"n": 1}).intent(1)
    lost.step(1, outcome=None, blob={"field": "outcome", "hash": "0" * 32, "bytes": 1_000_000})
    place_script(store, bundle, lost)
    found = against(store, SAME)
    assert found[good.thread].identical
    assert "blob 00000000000000000000000000000000 is missing" in found[lost.thread].message


def test_nothing_is_written(store: Store) -> None:
    """No file in the store changes, the journals included."""
    past(store, 1)
    before = _files(store.root)
    against(store, SAME)
    assert _files(store.root) == before


def _files(root: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in root.rglob("*")}
