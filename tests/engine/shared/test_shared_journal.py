"""Journal of a shared store's thread: what its owner's store has, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from testbed.bundles import place
from testbed.journals import NOW_MS
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.journal.journal import JournalBroken
from uncaged_engine.shared.journal import SharedJournal
from uncaged_engine.stores.protocol import FenceRaised, LineOwner, ThreadHead

PAUSE = lines.control("pause", {}, NOW_MS)


@dataclass
class ScriptedOwner(LineOwner):
    """An owner of lines in no store. fenced: another one took over. events: what happened."""

    events: list[object] = field(default_factory=list)
    fenced: bool = False
    head = ThreadHead(lines=1, size_bytes=1, digest=b"")
    fence = 1

    def append(self, added: Sequence[bytes]) -> ThreadHead:
        if self.fenced:
            raise FenceRaised("taken over")
        self.events.append(("append", list(added)))
        return self.head

    def close(self) -> None:
        self.events.append("close")


@pytest.fixture
def owner() -> ScriptedOwner:
    return ScriptedOwner()


@pytest.fixture
def journal(store: Store, owner: ScriptedOwner) -> SharedJournal:
    placed = place(store)
    file = JournalFile.open(store, placed.bundle.hash, placed.thread)
    made = SharedJournal(
        file,
        owner,
        send_blobs=lambda _lines: owner.events.append("blobs"),
        sent=lambda sent: owner.events.append(("sent", list(sent))),
    )
    made.on_flush = lambda size: owner.events.append(("flushed", size))
    return made


def test_lines_reach_the_store_at_a_flush_all_at_once(
    journal: SharedJournal, owner: ScriptedOwner
) -> None:
    """Blobs come first; followers hear of lines that the store has."""
    with closing(journal):
        before = journal.flushed_bytes
        added = [journal.append(PAUSE), journal.append(PAUSE)]
        assert owner.events == []
        assert journal.flushed_bytes == before
        journal.flush()
        size = before + sum(map(len, added))
        assert owner.events == ["blobs", ("append", added), ("sent", added), ("flushed", size)]
        assert journal.flushed_bytes == size
        journal.flush()
        assert len(owner.events) == 4


def test_a_fenced_owner_writes_no_more(journal: SharedJournal, owner: ScriptedOwner) -> None:
    """The refusal is final, even if the store would take lines again; nothing is reported."""
    with closing(journal):
        owner.fenced = True
        with pytest.raises(JournalBroken, match="taken over"):
            journal.append(PAUSE, flush=True)
        assert isinstance(journal.lost, FenceRaised)
        owner.fenced = False
        for attempt in (lambda: journal.append(PAUSE), journal.flush):
            with pytest.raises(JournalBroken, match="taken over"):
                attempt()
        assert owner.events == ["blobs"]
    assert owner.events[-1] == "close"
