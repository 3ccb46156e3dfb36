"""Lists of threads are served by an index that is never believed against a journal."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import COUNT, MARKED, Placed, granted, place, place_script, script_of, source
from testbed.foreground import environment
from testbed.steering import finish, intent_of, settle, wait_for
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import thread_created_ms
from uncaged_bundles.storage.store import HOME_VARIABLE, Store
from uncaged_cli import main
from uncaged_engine.api import Engine, ThreadSummary
from uncaged_engine.journal import archive, lines, lock, trouble
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.journal.trouble import Trouble
from uncaged_engine.state import index, index_file, observe
from uncaged_engine.threads import listing, names
from uncaged_engine.threads.housekeeping import prune

SLEEPER = source("sleeper", "    yield {'null': {'sleep_s': 600}}\n")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The threads whose journals a list reads."""
    seen: list[str] = []
    real = observe.read_summary

    def counted(store: Store, bundle: Any, thread: Any, path: Any) -> Any:
        seen.append(thread)
        return real(store, bundle, thread, path)

    monkeypatch.setattr(listing, "read_summary", counted)
    yield seen


def edited(store: Store, *statements: str) -> None:
    """Change the index by hand."""
    connection = sqlite3.connect(store.root / index_file.NAME)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def without_index(engine: Engine) -> list[ThreadSummary]:
    found = [observe.summarise(engine.store, *one) for one in engine.store.find_threads()]
    return sorted(found, key=lambda one: one.thread_id, reverse=True)


@pytest.fixture
def mixed(engine: Engine) -> list[Placed]:
    """Threads of every kind that a store collects: eight have ended, one of them packed; four may
    go on.
    """
    bundle = granted(engine.store, COUNT)
    scripts: list[Callable[[Any], Any]] = [
        lambda script: script.done(1).end("completed", result={"success": True, "message": "well"}),
        lambda script: script.done(1).end(
            "completed", result={"success": False, "message": "not well"}
        ),
        lambda script: (
            script.done(1).done(2).end("failed", error={"kind": "bundle", "message": "it raised"})
        ),
        lambda script: script.done(1).end("killed"),
        lambda script: script.done(1).end(
            "limit", limit="maxSteps", value=1, message="the limit is reached"
        ),
        lambda script: script.done(1).end(
            "completed",
            result={"message": "m" * 5000},
            usage={"inputTokens": 7, "cost": 0.1, "turns": 2},
        ),
        lambda script: script.done(1).add(
            b'{"end":"completed","result":{"message":"half of a pair: \\ud800"},"timestamp":5'
        ),
        lambda script: script.done(1).intent(2).void(2, begun=True).end("killed"),
        lambda script: script.done(1).control("pause"),
        lambda script: script.done(1).intent(2),
        lambda script: script.done(1).end("killed").control("resume"),
        lambda script: script,
    ]
    placed = [
        place_script(engine.store, bundle, begin(script_of(bundle, number=number)))
        for number, begin in enumerate(scripts)
    ]
    archive.compress(placed[0].path)
    return placed


def test_a_list_is_the_same_with_the_index_and_without(engine: Engine, mixed: list[Placed]) -> None:
    """Every summary that the index serves equals the one that the journal gives."""
    expected = without_index(engine)
    assert len(expected) == len(mixed)
    assert engine.threads() == expected, "read from the journals"
    assert engine.threads() == expected, "served by the index"
    (engine.store.root / index_file.NAME).unlink()
    assert engine.threads() == expected, "the index was deleted"


def test_journals_of_ended_threads_are_read_once(
    engine: Engine, mixed: list[Placed], read: list[str]
) -> None:
    """A second list reads what may go on, what an effect's rule decides, and what SQLite cannot
    keep; nothing else.
    """
    engine.threads()
    assert sorted(read) == [placed.thread for placed in mixed]
    read.clear()
    engine.threads()
    assert sorted(read) == [mixed[number].thread for number in (6, 7, 8, 9, 10, 11)]


def test_a_packed_and_an_unpacked_journal_are_read_anew(
    engine: Engine, mixed: list[Placed], read: list[str]
) -> None:
    """The archive is another file than the journal, and the journal that comes out of it again
    another one still.
    """
    expected = engine.threads()
    for change, name in (
        (archive.compress, mixed[1].path.name),
        (archive.restore, f"{mixed[1].path.name}.zst"),
    ):
        change(mixed[1].path.with_name(name))
        read.clear()
        assert engine.threads() == expected
        assert mixed[1].thread in read


def test_a_thread_that_another_process_resumed_is_read_anew(engine: Engine) -> None:
    """A row of a killed thread does not outlive its resume, and a new one is made when it has ended
    again.
    """
    placed = place(engine.store, MARKED, params={"n": 2})
    engine.kill(placed.thread)
    assert [one.status for one in engine.threads()] == ["killed"]
    engine.resume(placed.thread)
    finish(engine, placed.thread)
    assert [(one.status, one.steps) for one in engine.threads()] == [("completed", 2)]
    assert engine.threads() == without_index(engine)


@pytest.mark.parametrize("restored", ["over it", "beside it and renamed"])
def test_a_restored_backup_with_the_same_size_and_time_is_read_anew(
    engine: Engine, restored: str
) -> None:
    """A clock that was set back, or a backup tool that restores times, hides no change: the inode
    and its time of change tell.
    """
    bundle = granted(engine.store, COUNT)
    ended, other = (
        script_of(bundle).done(1).end("completed", result={"message": word})
        for word in ("one", "two")
    )
    placed = place_script(engine.store, bundle, ended)
    before = placed.path.stat()
    assert [one.message for one in engine.threads()] == ["one"]
    backup = placed.path
    if restored != "over it":
        backup = placed.path.with_name("backup")
    backup.write_bytes(other.data)
    os.utime(backup, ns=(before.st_atime_ns, before.st_mtime_ns))
    backup.rename(placed.path)
    after = placed.path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns), "the control"
    assert [one.message for one in engine.threads()] == ["two"]


def test_a_note_about_a_failed_flush_counts_more_than_a_row(engine: Engine) -> None:
    """Where a note says that less of a journal is on disk than its file shows, the list says what
    the disk has.
    """
    bundle = granted(engine.store, COUNT)
    script = script_of(bundle).done(1)
    whole = script.end("killed").data
    placed = place_script(engine.store, bundle, script_of(bundle).done(1).end("killed"))
    assert [one.status for one in engine.threads()] == ["killed"]
    last = whole[:-1].rfind(b"\n") + 1
    trouble.write(placed.path, Trouble(message="the disk refused", on_disk=last))
    try:
        assert [one.status for one in engine.threads()] == ["interrupted"]
    finally:
        trouble.clear(placed.path)
    assert [one.status for one in engine.threads()] == ["killed"]


def spoil_header(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)


def spoil_pages(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\xa5" * (len(data) - 100))


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {index_file.VERSION + 1}")
    connection.execute("ALTER TABLE threads ADD COLUMN more TEXT")
    connection.close()


def foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE threads (thread TEXT)")
    connection.close()


def triggered(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TRIGGER t AFTER INSERT ON threads BEGIN DELETE FROM threads; END")
    connection.close()


def write_ahead(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def not_unicode(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE threads SET message = CAST(x'ff00ff' AS TEXT)")
    connection.commit()
    connection.close()


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_header,
        spoil_pages,
        halve,
        newer,
        foreign,
        triggered,
        write_ahead,
        not_unicode,
        linked,
        Path.unlink,
    ],
)
def test_a_damaged_or_foreign_index_is_replaced(
    engine: Engine, mixed: list[Placed], spoil: Callable[[Path], None], read: list[str]
) -> None:
    """A list is right whatever the file holds, and the one after it is served by a new index."""
    expected = engine.threads()
    assert engine.running() == []
    spoil(engine.store.root / index_file.NAME)
    assert engine.threads() == expected
    assert engine.running() == []
    assert (
        names.newest_ids(engine.store, "", 3)
        == sorted((placed.thread for placed in mixed), reverse=True)[:3]
    )
    engine.threads()
    read.clear()
    assert engine.threads() == expected
    assert len(read) == 6, "the new index serves the others"
    path = engine.store.root / index_file.NAME
    assert path.is_file()
    assert not path.is_symlink()


def test_a_directory_in_the_place_of_the_index_is_done_without(
    engine: Engine, mixed: list[Placed]
) -> None:
    """A directory that cannot be replaced is left alone, and lists read the journals."""
    (engine.store.root / index_file.NAME).mkdir()
    assert engine.threads() == without_index(engine)
    assert engine.running() == []
    assert len(names.newest_ids(engine.store, "", 100)) == len(mixed)


def test_the_index_is_readable_by_its_owner_alone(engine: Engine, mixed: list[Placed]) -> None:
    """The file has mode 0600 under any umask, and gets it back."""
    assert mixed
    before = os.umask(0)
    try:
        engine.threads()
    finally:
        os.umask(before)
    path = engine.store.root / index_file.NAME
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    engine.threads()
    assert path.stat().st_mode & 0o777 == 0o600


LISTS = """
import sys
from pathlib import Path
from uncaged_engine.api import Engine
engine = Engine.open(Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    print(sorted((one.thread_id, one.status, one.message) for one in engine.threads()), [one.thread_id for one in engine.running()])
"""


@pytest.mark.slow
def test_processes_share_the_index(engine: Engine, mixed: list[Placed]) -> None:
    """Processes that list at once, while the index is spoilt again and again, all answer right and
    print no error.
    """
    expected = engine.threads()
    command = [sys.executable, "-c", LISTS, str(engine.store.root), "6"]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment())
        for _ in range(3)
    ]
    path = engine.store.root / index_file.NAME
    spoilt = 0
    while any(process.poll() is None for process in processes):
        if path.exists():
            path.write_bytes(b"spoilt" * 1000)
            spoilt += 1
        assert engine.threads() == expected
    line = f"{sorted((one.thread_id, one.status, one.message) for one in expected)} []"
    for process in processes:
        out, err = process.communicate()
        assert (set(out.splitlines()), err) == ({line}, "")
    assert spoilt > 2
    assert len(mixed) == len(expected)


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("has_index", [True, False])
def test_a_store_that_cannot_be_written_is_listed(
    engine: Engine, mixed: list[Placed], has_index: bool
) -> None:
    """A reader that may not write answers the same, from an index that is there or without one."""
    expected = engine.threads() if has_index else without_index(engine)
    if has_index:
        engine.running()
    else:
        (engine.store.root / index_file.NAME).unlink(missing_ok=True)
    root = str(engine.store.root)
    wall = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", root, root]
    code = LISTS.replace(
        "Engine.open(Path(sys.argv[1]))",
        "Engine(__import__('uncaged_bundles.storage.store').storage.store.Store(root=Path(sys.argv[1])))",
    )
    done = subprocess.run(
        [*wall, sys.executable, "-c", code, root, "2"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    line = f"{sorted((one.thread_id, one.status, one.message) for one in expected)} []"
    assert (done.stdout.splitlines(), done.stderr) == ([line] * 2, "")
    assert (engine.store.root / index_file.NAME).exists() == has_index
    assert mixed


def test_a_lying_row_changes_a_list_and_nothing_else(engine: Engine) -> None:
    """Verbs that act read the journal: a completed thread that the index calls killed is not
    resumed, nor is a young one pruned as old.
    """
    bundle = granted(engine.store, COUNT)
    completed = place_script(engine.store, bundle, script_of(bundle).done(1).end("completed"))
    killed = place_script(engine.store, bundle, script_of(bundle, number=1).done(1).end("killed"))
    engine.threads()
    edited(
        engine.store,
        "UPDATE threads SET updated_ms = 1, message = 'a lie', status = iif(status = 'killed', 'completed', 'killed')",
    )
    assert {one.thread_id: one.status for one in engine.threads()} == {
        completed.thread: "killed",
        killed.thread: "completed",
    }, "the lie"
    with pytest.raises(RefusedError, match="is completed"):
        engine.resume(completed.thread)
    assert engine.thread(completed.thread).summary.status == "completed"
    age_ms = time.time_ns() // 1_000_000 - thread_created_ms(killed.thread) + 3_600_000
    assert prune(engine, older_than_ms=age_ms).threads == ()
    engine.resume(killed.thread)
    finish(engine, killed.thread)
    assert {one.thread_id: one.status for one in engine.threads()}[killed.thread] == "completed"


@pytest.mark.slow
@pytest.mark.parametrize(
    "lie",
    [
        "UPDATE threads SET spent = 'no JSON'",
        "UPDATE threads SET spent = '{\"cost\": Infinity}'",
        'UPDATE threads SET spent = \'{"cost": "much"}\'',
        "UPDATE threads SET spent = '[1]'",
        "UPDATE threads SET status = 'running'",
        "UPDATE threads SET status = 'gone'",
        "UPDATE threads SET flow = NULL",
        "UPDATE threads SET message = substr(message, 1, 100) || char(0)",
        "UPDATE threads SET hash = '../../../etc'",
        "UPDATE threads SET thread = '../../../etc/passwd' || thread",
        "INSERT INTO taken_up VALUES ('../..', '../../x', 1)",
        "INSERT INTO taken_up VALUES ('C9NMV6V2TQT81', '01KQXKW0000000000000000000', 1)",
        "UPDATE log SET place = -5",
        "UPDATE log SET place = 1000000",
        "UPDATE log SET witness = x'00'",
        "DELETE FROM log",
        "INSERT INTO threads (hash, thread) VALUES ('', 'ZZZ; rm -rf /')",
    ],
)
def test_a_row_that_means_nothing_is_read_anew(
    engine: Engine,
    mixed: list[Placed],
    lie: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Values that the engine never writes show nowhere, and print no error."""
    expected = engine.threads()
    engine.running()
    edited(engine.store, lie)
    assert engine.threads() == expected
    assert engine.running() == []
    assert names.newest_ids(engine.store, "", 100) == sorted(
        (placed.thread for placed in mixed), reverse=True
    )
    monkeypatch.setenv(HOME_VARIABLE, str(engine.store.root))
    assert main.run(["threads"]) == 0
    assert main.run(["ps"]) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_numbers_beyond_sqlite_are_not_kept(engine: Engine, read: list[str]) -> None:
    """A start record with a time of forty digits is listed, and read again at each list."""
    bundle = granted(engine.store, COUNT)
    script = script_of(bundle)
    placed = place_script(engine.store, bundle, script.done(1).end("completed"))
    [summary] = engine.threads()
    assert index.stamp_of(os.stat_result((0, (1 << 63) + 5, 0, 1, 0, 0, 9, 0, 0, 0)))[0] == 5
    index.remember(engine.store, [((1, 2, 3, 1 << 63), summary, True)], since=None)
    read.clear()
    assert engine.threads() == [summary]
    assert read == [], "the row from before is still there"
    assert placed.path.exists()


# Threads that run


def ended_threads(engine: Engine, count: int) -> None:
    bundle = granted(engine.store, COUNT)
    for number in range(count):
        place_script(
            engine.store, bundle, script_of(bundle, number=number).done(1).end("completed")
        )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The journals whose lock is looked at."""
    seen: list[str] = []
    real = lock.is_live

    def counted(path: Path | str) -> bool:
        seen.append(os.fspath(path))
        return real(path)

    monkeypatch.setattr(lock, "is_live", counted)
    yield seen


def test_ps_looks_at_no_thread_that_no_worker_took_up(
    engine: Engine, asked: list[str], read: list[str]
) -> None:
    """The number of journals that `ps` opens is that of live threads, and of those that ended since
    it was asked last.
    """
    ended_threads(engine, 50)
    assert engine.running() == []
    granted(engine.store, SLEEPER)
    thread = engine.run("sleeper", prompt="")
    for expected in ([thread], [thread]):
        wait_for(engine, thread, intent_of(1))
        asked.clear()
        read.clear()
        assert [one.thread_id for one in engine.running()] == expected
        assert (len(asked), read) == (1, [thread])
    engine.kill(thread)
    settle(engine, thread)
    for looks in (1, 0):
        asked.clear()
        assert engine.running() == []
        assert len(asked) == looks


@pytest.mark.parametrize("lost", ["the index", "the order log", "both", "the order log, replaced"])
def test_ps_finds_what_runs_when_files_were_deleted(engine: Engine, lost: str) -> None:
    """Without the index, or with another log than it knows, every journal's lock is looked at
    once.
    """
    ended_threads(engine, 3)
    granted(engine.store, SLEEPER)
    engine.running()
    thread = engine.run("sleeper", prompt="")
    assert [one.thread_id for one in engine.running()] == [thread]
    order = engine.store.logs / "order"
    if lost != "the index":
        data = order.read_bytes()
        order.unlink()
        if lost.endswith("replaced"):
            order.write_bytes(b"\n" + b"x" * len(data) + b"\n")
    if lost in ("the index", "both"):
        (engine.store.root / index_file.NAME).unlink()
    assert [one.thread_id for one in engine.running()] == [thread]
    assert [one.thread_id for one in engine.running()] == [thread], "and kept"
    engine.kill(thread)
    settle(engine, thread)
    assert engine.running() == []


def test_a_journal_that_was_taken_up_again_meanwhile_is_not_released(engine: Engine) -> None:
    """A reader that saw the lock free drops the row that it read, not the one of a take-up after
    it.
    """
    store = engine.store
    bundle = granted(store, COUNT)
    placed = place_script(store, bundle, script_of(bundle).done(1).end("killed"))
    place_of = (bundle.hash, placed.thread)
    assert names.locked_journals(store) == []
    store.note_taken_up(*place_of)
    first = index.noted(store)
    assert first is not None
    again = index.noted(store)
    assert again is not None
    assert set(first.taken_up) == set(again.taken_up) == {place_of}
    store.note_taken_up(*place_of)
    assert index.noted(store) is not None, "another reader learns of it"
    index.release(store, list(again.taken_up.items()))
    kept = index.noted(store)
    assert kept is not None
    assert set(kept.taken_up) == {place_of}
    journal = JournalFile.open(store, bundle.hash, placed.thread)
    try:
        assert names.locked_journals(store) == [place_of]
        assert [one.status for one in engine.running()] == [], (
            "locked, and its end record is the last line still"
        )
        journal.append(lines.control("resume", {}, 5))
        assert [one.thread_id for one in engine.running()] == [placed.thread]
    finally:
        journal.close()
    assert names.locked_journals(store) == []


# Completion


def test_completion_offers_the_newest_threads_that_are_there(engine: Engine) -> None:
    """Ids come from the index and the log: those of removed threads are passed over, those that no
    worker has seen are offered.
    """
    ended_threads(engine, 30)
    bundle = granted(engine.store, COUNT)
    everything = names.newest_ids(engine.store, "", 100)
    assert len(everything) == 30
    engine.remove_thread(everything[0])
    assert names.newest_ids(engine.store, "", 5) == everything[1:6]
    last = script_of(bundle, number=99)
    engine.store.note_start(last.thread)
    assert last.thread not in names.newest_ids(engine.store, "", 5), "named, and not there yet"
    place_script(engine.store, bundle, last)
    assert names.newest_ids(engine.store, "", 2) == [last.thread, everything[1]]
    archive.compress(engine.store.data_path(bundle.hash, everything[1]))
    assert names.newest_ids(engine.store, everything[1], 9) == [everything[1]]
    assert names.newest_ids(engine.store, "Ü\udc80", 9) == []


def test_short_ids_are_unique_in_the_store(engine: Engine) -> None:
    """The neighbours of the ids shown are enough to shorten them as if all ids were known."""
    from uncaged_cli.display.table import unique_prefixes

    ended_threads(engine, 40)
    threads = engine.threads()
    engine.running()
    every = unique_prefixes([one.thread_id for one in threads], minimum=10)
    for shown in (threads[:1], threads[5:9], threads):
        near = unique_prefixes(
            names.ids_near(engine.store, [one.thread_id for one in shown]), minimum=10
        )
        assert {one.thread_id: near[one.thread_id] for one in shown} == {
            one.thread_id: every[one.thread_id] for one in shown
        }


def test_a_copied_store_is_read_anew(
    engine: Engine, mixed: list[Placed], tmp_path: Path, read: list[str]
) -> None:
    """The files of a copy are others, so that no row counts there."""
    expected = engine.threads()
    shutil.copytree(engine.store.root, tmp_path / "copy")
    read.clear()
    assert Engine(Store.open(tmp_path / "copy")).threads() == expected
    assert len(read) == len(mixed)
