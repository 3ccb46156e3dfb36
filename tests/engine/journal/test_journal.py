"""Promises of the journal's protocol, kept by each implementation: files, and memory as a second
one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.journals import BUNDLE, NOW_MS, THREAD, Script, start_fields
from testbed.memory import MemoryThread
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile, create
from uncaged_engine.journal.journal import Journal, JournalBusy
from uncaged_engine.journal.recover import recover

START = lines.start(start_fields(), NOW_MS)
Open = Callable[[], Journal]


def in_files(directory: Path) -> Open:
    """A new thread in the files of a store."""
    store = Store.open(directory)
    create(store.data_path(BUNDLE, THREAD), START, BUNDLE, THREAD)
    return lambda: JournalFile.open(store, BUNDLE, THREAD)


def in_memory(_directory: Path) -> Open:
    """A new thread in memory."""
    return MemoryThread.create(START, BUNDLE, THREAD).open


@pytest.fixture(params=[in_files, in_memory])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a function that opens the journal of a new thread."""
    make: Callable[[Path], Open] = request.param
    return make(tmp_path)


def test_an_appended_line_is_sealed_and_follows(opened: Open) -> None:
    """append returns the line as the journal holds it, chained to the one before: byte for byte
    what the engine's shapes and seals make of it.
    """
    journal = opened()
    script = Script.begun()
    assert journal.read() == script.data
    before = len(script.data)
    script.intent(1).add(lines.step(1, {"outcome": None}, NOW_MS))
    appended = journal.append(lines.intent(1, b'{"null":{}}', NOW_MS))
    appended += journal.append(lines.step(1, {"outcome": None}, NOW_MS), flush=True)
    assert journal.read(before) == appended
    history = recover(journal.read(), BUNDLE, THREAD)
    assert (len(history.steps), history.damage) == (1, None)
    assert journal.reread().digest == history.digest
    assert journal.history.steps == []
    journal.close()


def test_a_flush_reports_the_durable_size_once(opened: Open) -> None:
    """Followers learn of a line after its flush, by either way to flush; a flush without a new line
    reports nothing.
    """
    journal = opened()
    sizes: list[int] = []
    journal.on_flush = sizes.append
    journal.append(lines.control("note", {}, NOW_MS))
    assert sizes == []
    journal.flush()
    journal.flush()
    assert sizes == [len(journal.read())] == [journal.flushed_bytes]
    journal.append(lines.control("note", {}, NOW_MS), flush=True)
    journal.flush()
    assert sizes[1:] == [len(journal.read())] == [journal.flushed_bytes]
    journal.close()


def test_an_earlier_owner_s_lines_count_as_unflushed(opened: Open) -> None:
    """A killed worker's last line may be in memory only; followers learn of it after a flush of its
    successor.
    """
    first = opened()
    first.append(lines.control("note", {}, NOW_MS))
    first.close()
    second = opened()
    assert second.flushed_bytes == 0
    second.flush()
    assert second.flushed_bytes == len(second.read())
    second.close()


def test_a_journal_has_one_owner_at_a_time(opened: Open) -> None:
    """A second open is refused and changes nothing; after close, however often, it succeeds."""
    journal = opened()
    before = journal.read()
    for _ in range(2):
        with pytest.raises(JournalBusy, match=f"thread {THREAD} is in use"):
            opened()
    assert journal.read() == before
    journal.close()
    journal.close()
    opened().close()


def test_a_closed_journal_takes_nothing_more(opened: Open) -> None:
    """A caller that still knows it gets an error, while the next owner has it open."""
    journal = opened()
    journal.close()
    successor = opened()
    before = successor.read()
    for act in (lambda: journal.append(b'{"a":1'), journal.flush):
        with pytest.raises(JournalBusy, match="left just now"):
            act()
    assert successor.read() == before
    successor.close()


def test_nothing_but_a_resume_follows_an_end(opened: Open) -> None:
    """A pause that arrives while the thread ends is refused by the owner that wrote the end, and by
    the next one.
    """
    journal = opened()
    journal.append(lines.end("killed", {}, NOW_MS))
    for _ in range(2):
        with pytest.raises(JournalBusy, match="has ended"):
            journal.append(lines.control("pause", {}, NOW_MS))
        journal.flush()
        journal.close()
        journal = opened()
    journal.append(lines.control("resume", {}, NOW_MS))
    journal.append(lines.control("pause", {}, NOW_MS))
    journal.close()
    journal = opened()
    assert journal.history.paused
    journal.close()


def test_a_large_field_comes_back_from_its_blob(opened: Open) -> None:
    """The line names the blob, the size counts both, and the bundle gets the line as if nothing had
    been moved.
    """
    journal = opened()
    before = journal.kept_bytes()
    assert before == len(journal.read())
    journal.append(lines.intent(1, b'{"null":{}}', NOW_MS))
    fields = journal.blobs.spill({"outcome": "x" * 1000})
    line = journal.append(lines.step(1, fields, NOW_MS))
    assert len(line) < 300
    assert journal.kept_bytes() == len(journal.read()) + len('"') * 2 + 1000
    expanded = lines.step(1, {"outcome": "x" * 1000}, NOW_MS) + b"}\n"
    assert journal.blobs.expand(line) == expanded
    journal.close()
    again = opened()
    assert again.blobs.expand(line) == expanded
    assert again.kept_bytes() == len(again.read()) + 1002
    again.close()


@pytest.mark.parametrize("name", ["0" * 32, "../config", ""])
def test_a_blob_that_was_never_put_is_damage(opened: Open, name: str) -> None:
    """A hash without bytes, and a name that is no hash, are errors that a reader can report."""
    journal = opened()
    with pytest.raises(DamagedError):
        journal.blobs.get(name)
    journal.close()


def test_a_note_says_why_the_owner_left(opened: Open) -> None:
    """The note is the reason that was named, and a thread of this machine has no other origin."""
    journal = opened()
    assert journal.note("the disk is full").message == "the disk is full"
    assert journal.origin() is None
    assert str(THREAD) in journal.place
    journal.close()
