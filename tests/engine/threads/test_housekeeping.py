"""Races of archive, restore, prune and import with other processes: a thread that can go on loses
nothing.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from testbed.bundles import COUNT, Placed, granted, place_script, script_of
from testbed.interleaving import just_after, just_before
from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.storage.store import HOME_VARIABLE, Store
from uncaged_cli import main
from uncaged_engine.api import Engine
from uncaged_engine.journal import archive, lines, lock
from uncaged_engine.journal.blobs import BlobDirectory
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.journal.journal import JournalBusy
from uncaged_engine.state.observe import summarise
from uncaged_engine.threads import housekeeping, removal, transfer
from uncaged_engine.threads.housekeeping import YOUNG_BLOB_S, archive_threads, prune

RESUME = lines.control("resume", {}, 5)


@pytest.fixture
def killed(store: Store) -> Placed:
    """A thread that has ended and can be resumed all the same."""
    bundle = granted(store, COUNT)
    return place_script(store, bundle, script_of(bundle).done(1).intent(2).void(2).end("killed"))


def opened(store: Store, placed: Placed) -> JournalFile:
    return JournalFile.open(store, placed.bundle.hash, placed.thread)


class Directory:
    """An open directory of another process."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDONLY)

    def close(self) -> None:
        os.close(self.fd)


def aged(path: Path) -> None:
    os.utime(path, (1, 1))


def test_a_thread_that_is_resumed_just_now_is_not_archived(
    engine: Engine, killed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker would write into a file without a name; the first process gets the lock, the other
    an error.
    """
    journals: list[JournalFile] = []
    just_before(monkeypatch, lock, "holding", lambda: journals.append(opened(engine.store, killed)))
    with pytest.raises(RefusedError, match="in use by another process"):
        archive_threads(engine, [killed.thread])
    [journal] = journals
    journal.append(RESUME)
    journal.close()
    assert killed.path.read_bytes().count(b'"resume"') == 1


def test_a_thread_that_is_named_twice_is_archived_once(engine: Engine, killed: Placed) -> None:
    """The lock of its journal, held for the batch, does not refuse the second name."""
    archived = archive_threads(engine, [killed.thread, killed.thread.lower()])
    assert archived.threads == (killed.thread,)
    assert archive.is_archived(engine.store.locate_thread(killed.thread)[2])


def test_a_thread_that_was_resumed_and_left_meanwhile_is_not_archived(
    engine: Engine, killed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is read again under the lock; an earlier reading does not count."""

    def resumed() -> None:
        journal = opened(engine.store, killed)
        journal.append(RESUME)
        journal.close()

    just_before(monkeypatch, lock, "holding", resumed)
    with pytest.raises(RefusedError, match="only an ended thread"):
        archive_threads(engine, [killed.thread])
    just_before(monkeypatch, lock, "holding", resumed)
    with pytest.raises(RefusedError, match="taken up just now"):
        removal.remove(
            engine.store,
            killed.bundle.hash,
            killed.thread,
            killed.path,
            among=frozenset({"killed"}),
        )
    assert killed.path.exists()


@pytest.mark.parametrize("away", ["packed", "removed"])
def test_a_journal_that_went_while_it_was_opened_is_not_taken(
    store: Store, killed: Placed, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    """Lines written to a file without a name would be lost, so opening it fails."""
    act: Callable[[], object] = (
        (lambda: archive.compress(killed.path)) if away == "packed" else killed.path.unlink
    )
    just_before(monkeypatch, lock, "take", act)
    with pytest.raises(JournalBusy, match="archived or removed just now"):
        opened(store, killed)


@pytest.mark.parametrize("moment", ["holding", "take"])
def test_two_take_a_thread_out_of_the_archive(
    store: Store, killed: Placed, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The slower one does not put the old journal over what the quicker one's worker has written by
    now.
    """
    packed = archive.compress(killed.path)
    held = os.open(packed, os.O_RDWR)
    assert lock.take(held)
    with pytest.raises(RefusedError, match="taken out of the archive"):
        archive.restore(packed)
    os.close(held)

    def quicker() -> None:
        archive.restore(packed)
        journal = opened(store, killed)
        journal.append(RESUME)
        journal.close()

    just_before(monkeypatch, lock, moment, quicker)
    with pytest.raises(RefusedError, match="taken out of the archive"):
        archive.restore(packed)
    assert b'"resume"' in killed.path.read_bytes()


def test_a_thread_that_is_taken_out_of_the_archive_just_now_is_not_removed(
    store: Store, killed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restored journal may have a new owner already."""
    packed = archive.compress(killed.path)
    just_before(monkeypatch, lock, "holding", lambda: archive.restore(packed))
    with pytest.raises(RefusedError, match="look at it again"):
        removal.remove(store, killed.bundle.hash, killed.thread, packed)
    assert killed.path.exists()


def test_a_journal_is_read_wherever_it_is_by_now(store: Store, killed: Placed) -> None:
    """A place that was looked up before it was packed, or unpacked, leads to it; nothing does once
    it was removed.
    """
    data = killed.path.read_bytes()
    place = (store, killed.bundle.hash, killed.thread)
    packed = archive.compress(killed.path)
    assert archive.contents(killed.path) == data
    assert summarise(*place, killed.path) == summarise(*place, packed)
    archive.restore(packed)
    assert archive.contents(packed) == data
    assert summarise(*place, packed).status == "killed"
    killed.path.unlink()
    for path in (killed.path, packed):
        with pytest.raises(NotFoundError, match="was removed"):
            summarise(*place, path)


def test_a_listing_passes_over_what_goes_meanwhile(
    engine: Engine, killed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that was removed since its directory was read is no corrupt one."""
    just_before(monkeypatch, os, "open", killed.path.unlink)
    assert engine.threads() == []


def test_a_worktree_that_is_made_just_now_stays(
    engine: Engine, killed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worktree of a thread that began after the threads were listed is kept."""
    store = engine.store
    left = store.work / "01HX5WBE00ABCDEFGHJKMNPQRS"
    left.mkdir()
    begun = script_of(killed.bundle, number=7)

    def begin() -> None:
        place_script(store, killed.bundle, begun)
        (store.work / begun.thread).mkdir()

    just_after(monkeypatch, housekeeping, "_every_thread", begin)
    housekeeping._sweep_worktrees(engine)
    assert [one.name for one in store.work.iterdir()] == [begun.thread]


def test_a_blob_that_is_put_again_just_now_stays(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old blob that no line names is kept if it was put again for a line that is not written
    yet.
    """
    blobs = BlobDirectory(engine.store.blobs)
    used, unused = blobs.put(b"used"), blobs.put(b"unused")
    for name in (used, unused):
        aged(engine.store.blobs / name)
    just_before(monkeypatch, BlobDirectory, "sweep", lambda: blobs.put(b"used"))
    prune(engine, older_than_ms=YOUNG_BLOB_S * 1000)
    assert [one.name for one in engine.store.blobs.iterdir()] == [used]


def test_no_blob_is_put_while_one_is_swept(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep and a put exclude each other by the lock of the directory, from the check of the age
    to the removal.
    """
    blobs = BlobDirectory(engine.store.blobs)
    refused: list[int] = []

    def try_it(operation: int) -> None:
        with pytest.raises(BlockingIOError), closing(Directory(blobs.directory)) as directory:
            fcntl.flock(directory.fd, operation | fcntl.LOCK_NB)
        refused.append(operation)

    aged(blobs.directory / blobs.put(b"used"))
    just_before(monkeypatch, os, "utime", lambda: try_it(fcntl.LOCK_EX))
    aged(blobs.directory / blobs.put(b"used"))
    just_before(monkeypatch, Path, "unlink", lambda: try_it(fcntl.LOCK_SH))
    assert blobs.sweep((), before_s=1000) == len(b"used")
    assert refused == [fcntl.LOCK_EX, fcntl.LOCK_SH]


def test_what_is_not_ours_in_the_store_is_passed_over(engine: Engine, killed: Placed) -> None:
    """A file among the directories of logs, and a directory among the blobs."""
    (engine.store.logs / ".DS_Store").write_bytes(b"x")
    (engine.store.blobs / "mine").mkdir()
    aged(engine.store.blobs / "mine")
    assert prune(engine, older_than_ms=0).threads == (killed.thread,)
    assert (engine.store.blobs / "mine").is_dir()


def test_two_imports_of_one_thread(
    engine: Engine, killed: Placed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The slower one does not write over a thread that runs by now."""
    transfer.export_thread(engine, killed.thread, tmp_path / "thread.tar.zst")
    data = killed.path.read_bytes()
    killed.path.unlink()

    def quicker() -> None:
        place_script(
            engine.store, killed.bundle, script_of(killed.bundle).done(1).control("resume")
        )

    just_before(monkeypatch, transfer, "held", quicker)
    with pytest.raises(RefusedError, match="by another process"):
        transfer.import_thread(engine, tmp_path / "thread.tar.zst", now_ms=1)
    assert killed.path.read_bytes() != data


def test_one_thread_that_cannot_be_removed_keeps_no_other(
    engine: Engine,
    killed: Placed,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The thread is named with the reason, and the command fails after all others are removed."""
    store = engine.store
    others = [
        place_script(store, killed.bundle, script_of(killed.bundle, number=n).done(1).end("killed"))
        for n in (1, 2)
    ]
    stuck = store.work / f"{killed.thread}.null"
    stuck.mkdir()  # a file is expected there
    monkeypatch.setenv(HOME_VARIABLE, str(store.root))
    assert main.run(["prune", "--older-than", "0d"]) == 1
    said = capsys.readouterr()
    assert f"thread {killed.thread} stays: " in said.err
    assert "removed 2 threads" in said.out
    assert [one.thread_id for one in engine.threads()] == [killed.thread]
    assert not any(one.path.exists() for one in others)
    stuck.rmdir()
    assert prune(engine, older_than_ms=0).problems == ()


@pytest.fixture
def listings() -> Iterator[list[str]]:
    """The directories that are listed while the test runs."""
    seen: list[str] = []
    watching = [True]

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in ("os.scandir", "os.listdir"):
            seen.append(str(arguments[0]))

    sys.addaudithook(watch)  # there is no way to take it off again, so it is switched off
    yield seen
    watching.clear()


@pytest.mark.parametrize("command", ["prune", "archive", "archive by name"])
def test_housekeeping_lists_each_directory_a_fixed_number_of_times(
    engine: Engine, listings: list[str], command: str
) -> None:
    """The number of directory listings does not grow with the number of threads, so the time is
    linear in it.
    """
    bundle = granted(engine.store, COUNT)
    counts = []
    for size in (3, 30):
        threads = [
            place_script(
                engine.store, bundle, script_of(bundle, number=n).done(1).end("killed")
            ).thread
            for n in range(size)
        ]
        listings.clear()
        match command:
            case "prune":
                assert len(prune(engine, older_than_ms=0).threads) == size
            case "archive":
                assert len(archive_threads(engine, [], older_than_ms=0).threads) == size
            case _:
                assert len(archive_threads(engine, threads).threads) == size
        # the import system lists directories, too
        counts.append(sum(str(engine.store.root) in one for one in listings))
        prune(engine, older_than_ms=0)
    assert 0 < counts[1] <= counts[0]
