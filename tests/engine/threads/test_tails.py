"""A thread with a damaged tail, however it ended, can be verified; only a command that takes the
lock cuts the tail.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from testbed.bundles import COUNT, Placed, granted, place_script, script_of
from testbed.journals import Script
from uncaged_bundles.storage.store import HOME_VARIABLE, Store
from uncaged_cli import main
from uncaged_engine.api import Engine
from uncaged_engine.journal import archive, lock
from uncaged_engine.threads.following import follow
from uncaged_engine.threads.housekeeping import archive_threads

pytestmark = pytest.mark.slow

ENDS: dict[str, Callable[[Script], Script]] = {
    "completed": lambda s: s.done(3).end("completed", result={"success": True, "message": "sum 6"}),
    "failed": lambda s: (
        s.intent(3).step(3, error={"kind": "null"}).end("failed", error={"kind": "replay"})
    ),
    "killed": lambda s: s.intent(3).void(3).end("killed"),
}
TAILS: dict[str, Callable[[list[bytes]], bytes]] = {
    "filled with zeros": lambda _lines: bytes(4096),
    "doubled last line": lambda lines: lines[-1],
    "doubled last two lines": lambda lines: b"".join(lines[-2:]),
    "torn": lambda lines: lines[-1][:20],
}


@pytest.fixture(params=ENDS)
def script(request: pytest.FixtureRequest, store: Store) -> Script:
    """A thread of three steps that ended."""
    return ENDS[request.param](script_of(granted(store, COUNT), params={"n": 3}).done(1).done(2))


def damaged(store: Store, script: Script, tail: str) -> tuple[Placed, bytes]:
    placed = place_script(store, granted(store, COUNT), script)
    rest = TAILS[tail](script.sealed)
    placed.path.write_bytes(script.data + rest)
    return placed, rest


@pytest.mark.parametrize("tail", TAILS)
def test_a_thread_that_ended_with_a_damaged_tail_is_verified(
    engine: Engine, script: Script, tail: str
) -> None:
    """`verify` takes the lock, cuts the tail, keeps it aside and says where; then the thread is
    proved like any other.
    """
    placed, rest = damaged(engine.store, script, tail)
    first = engine.verify(placed.thread)
    assert first.ok, first.message
    assert first.kept_aside is not None
    assert first.kept_aside.read_bytes() == rest
    assert placed.path.read_bytes() == script.data
    second = engine.verify(placed.thread)
    assert (second.ok, second.kept_aside) == (True, None)


@pytest.mark.parametrize("tail", TAILS)
def test_an_archived_thread_with_a_damaged_tail_is_verified(
    engine: Engine, script: Script, tail: str
) -> None:
    """A thread that an earlier version packed with its tail is unpacked, cut and packed again."""
    placed, rest = damaged(engine.store, script, tail)
    packed = archive.compress(placed.path)
    verdict = engine.verify(placed.thread)
    assert verdict.ok, verdict.message
    assert verdict.kept_aside is not None
    assert verdict.kept_aside.read_bytes() == rest
    assert archive.read(packed) == script.data
    assert not placed.path.exists()


@pytest.mark.parametrize("tail", TAILS)
def test_a_damaged_tail_is_not_archived(engine: Engine, script: Script, tail: str) -> None:
    """`archive` packs the whole lines, keeps the tail aside and says so."""
    placed, rest = damaged(engine.store, script, tail)
    archived = archive_threads(engine, [placed.thread])
    [kept] = archived.kept_aside
    assert kept.read_bytes() == rest
    assert archive.contents(placed.path) == script.data
    verdict = engine.verify(placed.thread)
    assert (verdict.ok, verdict.kept_aside) == (True, None)


@pytest.mark.parametrize("tail", TAILS)
def test_observers_leave_a_damaged_tail_as_it_is(engine: Engine, script: Script, tail: str) -> None:
    """Listing, showing, following and exporting a thread take no lock and change no byte."""
    placed, rest = damaged(engine.store, script, tail)
    before = placed.path.stat()
    status = engine.threads()[0].status
    assert engine.thread(placed.thread).summary.status == status
    assert (
        list(follow(engine.store, placed.bundle.hash, placed.thread, placed.path))[-1].body[
            "status"
        ]
        == status
    )
    assert placed.path.read_bytes() == script.data + rest
    assert placed.path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_tail_that_a_worker_owns_is_not_cut(engine: Engine, script: Script) -> None:
    """A held lock has a writer, so the verification reports the damage and changes nothing."""
    placed, rest = damaged(engine.store, script, "torn")
    fd = os.open(placed.path, os.O_RDWR)
    assert lock.take(fd)
    verdict = engine.verify(placed.thread)
    os.close(fd)
    assert not verdict.ok
    assert verdict.message.startswith("a torn tail at line ")
    assert placed.path.read_bytes() == script.data + rest


def test_the_command_says_where_the_tail_is(
    engine: Engine,
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The verdict of `verify` is on standard output, the tail's place on standard error."""
    placed, _ = damaged(engine.store, script, "filled with zeros")
    monkeypatch.setenv(HOME_VARIABLE, str(engine.store.root))
    assert main.run(["verify", placed.thread]) == 0
    said = capsys.readouterr()
    [kept] = placed.path.parent.glob("*.torn-*")
    assert "proved" in said.out
    assert str(kept) in said.err.replace("\n", "")


def test_a_line_that_was_sealed_is_no_torn_tail(engine: Engine, store: Store) -> None:
    """A misplaced line with a right chain was written on purpose; `verify` shows it and cuts
    nothing.
    """
    script = script_of(granted(store, COUNT), params={"n": 1}).done(1).step(5, outcome=1)
    placed = place_script(store, granted(store, COUNT), script)
    verdict = engine.verify(placed.thread)
    assert (verdict.ok, verdict.kept_aside) == (False, None)
    assert placed.path.read_bytes() == script.data
