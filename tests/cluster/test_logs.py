"""Lines and contents in PostgreSQL: batches, rows that were changed, and the cost of a hot path."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from testbed.stored_threads import BUNDLE, SOURCE, entry_of, script, started
from uncaged_bundles.errors import DamagedError, RefusedError, StorageError
from uncaged_cluster import contents, documents
from uncaged_cluster.logs import BATCH_LINES
from uncaged_cluster.store import open_store
from uncaged_engine.journal.chain import seal
from uncaged_engine.services.stores import (
    StoreBackend,
    ThreadNotes,
    conversation_seed,
)

from .conftest import Rows


def test_a_long_thread_is_read_in_batches(store: StoreBackend) -> None:
    """A batch has a bounded number of lines; the batches are the whole thread."""
    found = started(store, steps=BATCH_LINES)
    seen: list[bytes] = []
    while lines := store.threads.read(found.bundle, found.thread, from_line=len(seen)):
        assert len(lines) <= BATCH_LINES
        seen += lines
    assert seen == found.sealed
    with store.threads.open(found.bundle, found.thread) as owner:
        assert owner.head.size_bytes == len(found.data)


@pytest.mark.parametrize(
    "poison",
    [
        "UPDATE thread_lines SET line = line || 'x' WHERE log = 1 AND position = 2",
        "UPDATE thread_lines SET line = '\\x00' WHERE log = 1 AND position = 2",
        "UPDATE thread_lines SET line = repeat('{', 3000000)::bytea WHERE log = 1 AND position = 2",
        "UPDATE thread_lines SET line = '' WHERE log = 1 AND position = 2",
        "UPDATE thread_lines SET position = 12 WHERE log = 1 AND position = 2",
        "DELETE FROM thread_lines WHERE log = 1 AND position = 2",
        "DELETE FROM thread_lines WHERE log = 1 AND position > 2",
        "DELETE FROM thread_lines WHERE log = 1",
        "UPDATE threads SET digest = '\\x000000000000000000000000' WHERE number = 1",
        "UPDATE threads SET lines = 4 WHERE number = 1",
        "UPDATE threads SET lines = -1 WHERE number = 1",
        "INSERT INTO thread_lines SELECT 1, 5, line FROM thread_lines WHERE log = 1 AND position = 4",
    ],
)
def test_a_changed_row_is_damage_with_its_place(
    store: StoreBackend, rows: Rows, poison: str
) -> None:
    """Neither a reader nor an owner takes what does not fit the chain; other threads stay whole."""
    found, other = started(store, 1), started(store, 2)
    rows.execute(poison)
    with pytest.raises(DamagedError, match=found.thread):
        store.threads.open(found.bundle, found.thread)
    assert rows.execute("SELECT count(owner) FROM threads").fetchone() == (0,)
    with pytest.raises(DamagedError, match=found.thread):
        store.threads.read(found.bundle, found.thread)
        store.threads.head(found.bundle, found.thread)
    assert store.threads.read(other.bundle, other.thread) == other.sealed
    store.threads.open(other.bundle, other.thread).close()


@pytest.mark.parametrize(
    "poison",
    [
        "UPDATE threads SET digest = '\\x000000000000000000000000'",
        "UPDATE threads SET lines = 9",
        "DELETE FROM threads",
    ],
)
def test_a_head_that_changes_under_its_owner_refuses_the_append(
    store: StoreBackend, rows: Rows, poison: str
) -> None:
    """Nothing is appended to a thread whose row is not as its owner left it."""
    found = started(store)
    found.intent(3)
    with store.threads.open(found.bundle, found.thread) as owner:
        rows.execute(poison)
        with pytest.raises(DamagedError, match="nothing was appended"):
            owner.append(found.sealed[5:])
    assert rows.execute("SELECT count(*) FROM thread_lines").fetchone() == (5,)


def test_changed_contents_are_damage_with_their_name(store: StoreBackend, rows: Rows) -> None:
    """Bundles and blobs are hashed again at each load; a name that no store writes is named; a
    missing note of a thread's origin does not pass for none.
    """
    hash, name = store.bundles.put(SOURCE), store.blobs.put(b"blob")
    found = started(store)
    rows.execute("UPDATE bundles SET source = source || '\\x00'")
    rows.execute("UPDATE blobs SET content = ''")
    rows.execute("DELETE FROM thread_notes")
    with pytest.raises(DamagedError, match=hash):
        store.bundles.get(hash)
    with pytest.raises(DamagedError, match=hash):
        store.bundles.put(SOURCE)
    with pytest.raises(DamagedError, match=name):
        store.blobs.get(name)
    assert store.blobs.put(b"blob") == name  # repaired
    assert store.blobs.get(name) == b"blob"
    with pytest.raises(DamagedError, match=found.thread):
        store.threads.notes(found.bundle, found.thread)
    rows.execute("INSERT INTO documents (name, content) VALUES ('../keys/x', '')")
    with pytest.raises(DamagedError, match="keys/x"):
        store.documents.names()
    with pytest.raises(psycopg.errors.CheckViolation):
        rows.execute("UPDATE threads SET name = '../x'")
    rows.execute("DROP TABLE blobs")
    with pytest.raises(DamagedError, match="a part of the store is missing"):
        store.blobs.get(name)


def test_a_long_conversation_is_read_whole(store: StoreBackend) -> None:
    """A conversation of several batches is read in one call."""
    name, lines = script().thread, []
    digest = conversation_seed(name)
    for _ in range(BATCH_LINES + 1):
        line, digest = seal(digest, b'{"request":"x"')
        lines.append(line)
    store.conversations.start(name, lines)
    assert store.conversations.read(name) == lines
    assert store.conversations.read(name, from_line=1) == lines[1:]


def test_contents_that_a_row_cannot_hold_are_refused(
    store: StoreBackend, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are refused before they are sent, and before they are read."""
    name = store.blobs.put(bytes(100))
    monkeypatch.setattr(contents, "MAX_CONTENT_BYTES", 99)
    monkeypatch.setattr(documents, "MAX_CONTENT_BYTES", 99)
    with pytest.raises(RefusedError, match="100 bytes"):
        store.bundles.put(bytes(100))
    with pytest.raises(DamagedError, match=name):
        store.blobs.get(name)
    rows.execute(
        "INSERT INTO documents (name, content) VALUES ('selectors.json', %s)", [bytes(100)]
    )
    with pytest.raises(DamagedError, match="selectors"):
        store.documents.read("selectors.json")


def test_names_of_blobs_come_in_batches(
    store: StoreBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches are all names, in order."""
    names = sorted(store.blobs.put(bytes([number])) for number in range(5))
    monkeypatch.setattr(contents, "NAMES_AT_ONCE", 2)
    assert list(store.blobs.names()) == names


def test_a_closed_store_is_refused(store: StoreBackend) -> None:
    """Its owners can append no more, and close without an error."""
    found = started(store)
    found.intent(3)
    owner = store.threads.open(found.bundle, found.thread)
    store.close()
    with pytest.raises(StorageError, match="was closed"):
        owner.append(found.sealed[5:])
    owner.close()
    with pytest.raises(StorageError, match="was closed"):
        store.bundles.hashes()


@pytest.mark.slow
def test_a_hot_path_uses_indexes_and_writes_a_row_for_each_line(
    address: str, store: StoreBackend, rows: Rows
) -> None:
    """With many threads, neither a page, a look-up, a read nor an append scans a table; an append
    writes its lines and a new version of the head, for which no index changes.
    """
    began = started(store)
    store.close()
    rows.execute(
        "INSERT INTO threads (name, bundle, place, by_thread, archived, digest)"
        " SELECT lpad(n::text, 26, '0'), %s, n, false, false, '\\x000000000000000000000000'"
        " FROM generate_series(10, 20000) AS n",
        [BUNDLE],
    )
    rows.execute("INSERT INTO thread_lines SELECT number, 0, '' FROM threads WHERE lines = 0")
    rows.execute("ANALYZE threads, thread_lines")
    rows.execute("SELECT pg_stat_force_next_flush()")
    before = counted(rows)
    found = script(2)
    with closing(open_store(address, create=False, is_visible=True)) as used:
        used.threads.start(entry_of(found), found.sealed[:1], ThreadNotes())
        with used.threads.open(found.bundle, found.thread) as owner:
            for line in found.sealed[1:]:
                owner.append([line])
        used.threads.page(limit=50)
        assert len(used.threads.page(after=entry_of(began, place=500), limit=50)) == 50
        used.threads.locate(found.thread)
        used.threads.head(found.bundle, found.thread)
        used.threads.read(found.bundle, found.thread, from_line=1)
        with pytest.raises(RefusedError):
            used.threads.start(entry_of(found), found.sealed, ThreadNotes())
    after = counted(rows)
    for table in ("threads", "thread_lines_first"):
        assert after[table]["scans"] == before[table]["scans"], table
    changed = {
        name: after["threads"][name] - before["threads"][name] for name in ("updated", "hot")
    }
    # the head of the first line, the owner, an append for each further line, and the close
    assert changed == {"updated": 7, "hot": 7}


def counted(rows: Rows) -> dict[str, dict[str, int]]:
    """Return the server's counts of sequential scans and changed rows, by table, as soon as the
    store's sessions have ended: then they have written theirs.
    """
    while rows.execute(
        "SELECT 1 FROM pg_stat_activity WHERE starts_with(application_name, 'uncaged-workflow ')"
    ).fetchall():
        pass
    names = ("scans", "inserted", "updated", "hot")
    found = rows.execute(
        "SELECT relname, seq_scan, n_tup_ins, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables"
        " WHERE schemaname = current_schema()"
    )
    return {table: dict(zip(names, numbers, strict=True)) for table, *numbers in found}
