"""Journal files: the owner holds the lock, and lines for which `flush` returned are on disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from testbed.journals import BUNDLE, NOW_MS, THREAD, Script, start_fields
from uncaged_bundles.errors import DamagedError, NotFoundError, UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import lines, lock
from uncaged_engine.journal.file import JournalFile, create
from uncaged_engine.journal.journal import JournalBroken, JournalBusy
from uncaged_engine.journal.recover import recover


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A new thread's journal."""
    path = tmp_path / "logs" / BUNDLE / f"{THREAD}.data.jsonl"
    path.parent.parent.mkdir()
    create(path, lines.start(start_fields(), NOW_MS), BUNDLE, THREAD)
    return path


def opened(path: Path) -> JournalFile:
    return JournalFile.open(Store(root=path.parents[2]), BUNDLE, THREAD)


def descriptor_of(path: Path) -> int:
    """The number under which this process has *path* open."""
    [found] = [
        int(one.name)
        for one in Path("/proc/self/fd").iterdir()
        if one.is_symlink() and one.resolve() == path.resolve()
    ]
    return found


def test_a_new_journal_holds_its_start_record(path: Path) -> None:
    """A new journal is whole under its final name, readable by its owner alone, and no temporary
    file is left beside it.
    """
    assert path.read_bytes() == Script.begun().data
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_appended_line_is_in_the_file_at_once(path: Path) -> None:
    """Another process reads the line before it was flushed."""
    journal = opened(path)
    line = journal.append(lines.intent(1, b'{"null":{}}', NOW_MS))
    assert path.read_bytes().endswith(line)
    journal.close()


def test_one_owner_at_a_time(path: Path) -> None:
    """A second open is refused and changes nothing; after close it succeeds."""
    journal = opened(path)
    before = path.read_bytes()
    with pytest.raises(JournalBusy, match=f"thread {THREAD} is in use"):
        opened(path)
    assert path.read_bytes() == before
    assert lock.is_live(path)
    journal.close()
    journal.close()
    assert not lock.is_live(path)
    opened(path).close()


def test_a_refused_second_owner_does_not_free_the_lock_of_the_first(path: Path) -> None:
    """The second owner closes its own descriptor of the file, which must not end the first one's
    lock.
    """
    journal = opened(path)
    for _ in range(3):
        with pytest.raises(JournalBusy):
            opened(path)
    assert lock.is_live(path)
    journal.close()


def test_a_closed_handle_takes_nothing_more(path: Path) -> None:
    """A caller that still has the handle gets the error that the thread was left; no byte is
    written to the file that has its descriptor's number now.
    """
    journal = opened(path)
    number = descriptor_of(path)
    journal.close()
    other = path.with_name("other")
    fd = os.open(other, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(fd, number)
    for act in (lambda: journal.append(b'{"a":1'), journal.flush):
        with pytest.raises(JournalBusy, match="left just now"):
            act()
    assert other.read_bytes() == b""
    os.close(fd)
    os.close(number) if number != fd else None


def test_a_failed_flush_is_final_for_its_handle(path: Path) -> None:
    """After one failed fdatasync the handle refuses every append and flush, even if the disk would
    take them again.
    """
    journal = opened(path)
    number = descriptor_of(path)
    kept = os.dup(number)
    read_end, write_end = os.pipe()
    journal.append(lines.control("note", {"n": 1}, NOW_MS))
    os.dup2(write_end, number)  # a pipe cannot be synchronised: the same call fails for real
    with pytest.raises(JournalBroken, match="the flush failed"):
        journal.flush()
    os.dup2(kept, number)
    before = path.read_bytes()
    for act in (lambda: journal.append(b'{"a":1'), journal.flush):
        with pytest.raises(JournalBroken, match="repair it, then `resume`"):
            act()
    assert path.read_bytes() == before
    journal.close()
    for fd in (kept, read_end, write_end):
        os.close(fd)


def test_a_failed_write_is_final_for_its_handle(path: Path) -> None:
    """A descriptor that cannot be written to: the error names the file, and nothing is tried
    again.
    """
    journal = opened(path)
    number = descriptor_of(path)
    kept = os.dup(number)
    readable = os.open(path, os.O_RDONLY)
    os.dup2(readable, number)
    with pytest.raises(JournalBroken, match="the write failed"):
        journal.append(lines.control("note", {}, NOW_MS))
    os.dup2(kept, number)
    with pytest.raises(JournalBroken):
        journal.append(lines.control("note", {}, NOW_MS))
    journal.close()
    os.close(kept)
    os.close(readable)


@pytest.mark.parametrize("torn", [b'{"seq":1,"inte', bytes(700), b'{"seq":1,"intent":{}}\n', b"\n"])
def test_a_torn_tail_is_kept_aside_and_cut(path: Path, torn: bytes) -> None:
    """The journal ends with its last whole line again; the cut bytes are in a file beside it, named
    by the offset at which they began.
    """
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    journal = opened(path)
    assert path.read_bytes() == whole
    assert path.with_name(f"{path.name}.torn-{len(whole)}").read_bytes() == torn
    journal.append(lines.intent(1, b'{"null":{}}', NOW_MS))
    journal.close()
    assert recover(path.read_bytes(), BUNDLE, THREAD).damage is None


def test_a_corrupt_journal_is_not_touched(path: Path) -> None:
    """Damage with valid lines behind it: refused with file and line and what to do, and no byte is
    moved.
    """
    script = Script.begun().done(1).done(2).done(3)
    broken = b"".join([*script.sealed[:2], b"x" + script.sealed[2][1:], *script.sealed[3:]])
    path.write_bytes(broken)
    with pytest.raises(
        DamagedError, match=rf"corrupt at .*{THREAD}.data.jsonl:3: .*fork {THREAD} --at 0"
    ):
        opened(path)
    assert path.read_bytes() == broken
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert not lock.is_live(path)


def test_what_is_no_journal_is_refused(path: Path) -> None:
    """An empty file and a missing one: an error that names the thread, and no lock is left
    behind.
    """
    path.write_bytes(b"")
    with pytest.raises(DamagedError, match=THREAD):
        opened(path)
    assert not lock.is_live(path)
    path.unlink()
    with pytest.raises(NotFoundError, match=THREAD):
        opened(path)
    path.mkdir()
    with pytest.raises(DamagedError, match="cannot open"):
        opened(path)


def test_a_journal_that_cannot_be_made_is_an_error_for_people(tmp_path: Path) -> None:
    """The directory of the logs is gone, or is a file: an error of ours that names the path, not a
    traceback.
    """
    for parent in (tmp_path / "missing" / BUNDLE, Path(__file__) / BUNDLE):
        with pytest.raises(UncagedError, match=BUNDLE):
            create(parent / "x.data.jsonl", b'{"format":1', BUNDLE, ThreadId(THREAD))


def test_a_fork_s_copied_lines_follow_its_start_record(tmp_path: Path) -> None:
    """`more` is written in the same stroke: a reader sees all of it or nothing."""
    script = Script.begun().done(1)
    path = tmp_path / "logs" / BUNDLE / f"{THREAD}.data.jsonl"
    path.parent.parent.mkdir()
    create(
        path, lines.start(start_fields(), NOW_MS), BUNDLE, THREAD, more=b"".join(script.sealed[1:])
    )
    assert path.read_bytes() == script.data
