"""A reader gets what is on disk: all that it could flush, or no more than what a failed flush left
certain.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.journals import BUNDLE, THREAD, Script
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import archive, durable, trouble
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.journal.recover import flushed_at_least
from uncaged_engine.journal.trouble import Trouble

SCRIPT = Script.begun().done(1).done(2).intent(3).step(3).end("completed", result={})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / BUNDLE / f"{THREAD}.data.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(SCRIPT.data)
    return path


def size_of(lines: int) -> int:
    return sum(map(len, SCRIPT.sealed[:lines]))


def test_a_journal_that_can_be_flushed_is_read_whole(path: Path) -> None:
    """Plain or archived, and without anything to say about it."""
    assert durable.read(path) == durable.Durable(data=SCRIPT.data, trouble=None)
    packed = archive.compress(path)
    assert durable.read(packed).data == durable.read(path).data == SCRIPT.data


def test_after_a_failed_flush_only_what_was_flushed_before_counts(path: Path) -> None:
    """Whether the note says so or the worker that failed; a note about something else hides
    nothing.
    """
    failed = Trouble(message="the flush failed", on_disk=size_of(5))
    assert durable.read(path, known=failed) == durable.Durable(
        data=SCRIPT.data[: size_of(5)], trouble=failed
    )
    trouble.write(path, failed)
    assert durable.read(path) == durable.Durable(data=SCRIPT.data[: size_of(5)], trouble=failed)
    trouble.write(path, Trouble(message="no space"))
    assert durable.read(path).data == SCRIPT.data
    trouble.clear(path)


def test_the_next_owner_settles_what_was_in_doubt(path: Path) -> None:
    """The next owner first writes those bytes again; then every reader sees them, and the note is
    gone.
    """
    trouble.write(path, Trouble(message="the flush failed", on_disk=size_of(5)))
    JournalFile.open(Store(root=path.parents[2]), BUNDLE, THREAD).close()
    assert path.read_bytes() == SCRIPT.data
    assert durable.read(path) == durable.Durable(data=SCRIPT.data, trouble=None)


def test_what_was_flushed_at_least_follows_from_the_lines() -> None:
    """An effect is performed after the flush of its intent: an intent that some line follows was
    flushed, with all before it.
    """
    assert (
        [flushed_at_least(b"".join(SCRIPT.sealed[:n])) for n in range(len(SCRIPT.sealed) + 1)]
        == [
            *(0, *[size_of(1)] * 2),  # nothing, the start, an intent that may be in memory only
            *[size_of(2)] * 2,
            *[size_of(4)] * 2,
            *[size_of(6)] * 2,
        ][: len(SCRIPT.sealed) + 1]
    )
