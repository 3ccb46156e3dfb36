"""Old threads of a store in PostgreSQL: found by index, removed with all that belongs to them."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest
from psycopg import sql
from testbed.bundles import source, thread_id
from testbed.journals import NOW_MS, Script
from testbed.postgres import PostgresServer
from testbed.stored_threads import BUNDLE, SOURCE, entry_of, started
from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_cluster import migrations, ranges
from uncaged_cluster.retention import ENDED
from uncaged_cluster.store import PostgresStore, open_store
from uncaged_cluster.threads import ENTRY_COLUMNS, page_of
from uncaged_engine.api import Engine
from uncaged_engine.services.stores import Candidates, StoreBackend, ThreadEntry, ThreadNotes
from uncaged_engine.shared.retention import (
    Descents,
    archive_shared,
    prune_shared,
    remove_shared,
)
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.threads.filtering import ThreadFilter
from uncaged_engine.threads.housekeeping import Pruned

from .conftest import Rows

LATER_MS = NOW_MS + 1
NEWEST = ThreadEntry(bundle=BUNDLE, id=ThreadId(""), place=1 << 60)


class Forgetful:
    """A dispatcher that has nothing to forget. before_ms: what it was asked for."""

    def __init__(self) -> None:
        self.before_ms: list[int] = []

    def forget(self, *, before_ms: int, progress: object) -> None:
        del progress
        self.before_ms.append(before_ms)


def put(store: StoreBackend, found: Script, *, by_thread: bool = False) -> ThreadId:
    store.threads.start(entry_of(found, by_thread=by_thread), found.sealed, ThreadNotes())
    return found.thread


def listed(store: StoreBackend) -> list[ThreadId]:
    return [entry.id for entry in store.threads.page(limit=100)]


def pruned(store: StoreBackend, *, flow: str | None = None, dry_run: bool = False) -> Pruned:
    assert isinstance(store, PostgresStore)
    return prune_shared(
        store,
        Forgetful,  # type: ignore[arg-type]  # which has what is used here
        before_ms=LATER_MS,
        flow=flow,
        dry_run=dry_run,
        progress=lambda _kind, _count: None,
    )


def ids(store: StoreBackend, statuses: Collection[str], flow: str | None = None) -> list[ThreadId]:
    among = ThreadFilter(statuses=statuses, flow=flow).candidates()
    return [entry.id for entry in store.threads.page(limit=10, newest_first=True, among=among)]


def test_ended_threads_are_removed_by_age_and_flow(
    store: StoreBackend, rows: Rows, tmp_path: Path
) -> None:
    """One without an end, one at a limit, one with an owner and one whose parent may go on stay. A
    blob goes with the last line that names it, unless it is young. No copy brings a thread back.
    """
    assert isinstance(store, PostgresStore)
    old, young = store.blobs.put(b"old"), store.blobs.put(b"young")
    named = Script.begun(BUNDLE, thread_id(1)).intent(1).step(1, outcome=1, trace=old)
    done = put(store, named.end("completed", result={"success": False}))
    other = put(store, Script.begun(BUNDLE, thread_id(2), name="other").end("failed", error={}))
    limit = put(store, Script.begun(BUNDLE, thread_id(3)).end("limit", limit="maxSteps"))
    going = started(store, 4).thread
    owned = put(store, Script.begun(BUNDLE, thread_id(5)).end("killed"))
    parent = put(store, Script.begun(BUNDLE, thread_id(6)).control("pause"))
    child = Script.begun(BUNDLE, thread_id(7), parent={"threadId": parent, "depth": 1})
    needed = put(store, child.end("completed", result=None), by_thread=True)
    backup = DirectoryBackend.open(tmp_path / "backup", create=True)
    store.bundles.put(SOURCE)
    copy_store(store, backup, replace=False, progress=lambda _kind, _count: None)

    assert ids(store, ["unsuccessful"]) == [done]
    assert ids(store, ["completed"]) == [needed, done]
    assert ids(store, ["paused", "limit"]) == [parent, going, limit]
    assert ids(store, [], "other") == ids(store, ["failed", "killed"], "other") == [other]
    assert len(ids(store, ["corrupt"])) == 7

    rows.execute("UPDATE blobs SET put_at = now() - interval '2 days' WHERE name = %s", [old])
    with (
        closing(open_store(store.address, create=False, is_visible=True)) as elsewhere,
        elsewhere.threads.open(BUNDLE, owned),
    ):
        assert pruned(store, flow="other", dry_run=True).threads == (other,)
        assert pruned(store, flow="other").threads == (other,)
        assert sorted(store.blobs.names()) == sorted((old, young))
        found = pruned(store)
    assert (found.threads, found.kept) == ((done,), (needed,))
    assert found.freed_bytes == len(named.data) + len(b"old")
    assert list(store.blobs.names()) == [young]
    assert listed(store) == [limit, going, owned, parent, needed]
    assert rows.execute(
        "SELECT count(*) FROM thread_lines WHERE log NOT IN (SELECT number FROM threads)"
    ).fetchone() == (0,)

    with pytest.raises(RefusedError, match="would start it again"):
        remove_shared(store, entry_of(child, by_thread=True))
    remove_shared(store, entry_of(Script(bundle=BUNDLE, thread=parent)))
    assert set(pruned(store).threads) == {owned, needed}
    copy_store(backup, store, replace=False, progress=lambda _kind, _count: None)
    assert listed(store) == [limit, going]
    with pytest.raises(NotFoundError):
        store.threads.head(BUNDLE, done)


def test_ended_threads_are_moved_into_a_directory(store: StoreBackend, tmp_path: Path) -> None:
    """Packed, with bundle and blobs, into a whole store with all flows; a parent that ended after
    its child takes it along.
    """
    assert isinstance(store, PostgresStore)
    store.bundles.put(SOURCE)
    origin = Engine.open(tmp_path / "origin")
    origin.add("unused", source("unused", "    yield {'null': {}}"), accept=lambda _: True)
    copy_store(
        DirectoryBackend(origin.store), store, replace=False, progress=lambda _kind, _count: None
    )
    blob = store.blobs.put(b"a picture")
    parent = Script.begun(BUNDLE, thread_id(1)).done(1, trace=blob, outcome=1)
    put(store, parent.end("killed"))
    child = Script.begun(BUNDLE, thread_id(2), parent={"threadId": parent.thread, "depth": 1})
    put(store, child.end("completed", result=None), by_thread=True)
    going = started(store, 3)
    target = DirectoryBackend.open(tmp_path / "kept", create=True)
    dispatcher = Forgetful()
    with pytest.raises(RefusedError, match="has not ended"):
        archive_shared(
            store,
            lambda: dispatcher,  # type: ignore[arg-type, return-value]
            target,
            named=[entry_of(going)],
            before_ms=None,
            flow=None,
            progress=lambda _kind, _count: None,
        )
    found = archive_shared(
        store,
        lambda: dispatcher,  # type: ignore[arg-type, return-value]
        target,
        named=[],
        before_ms=LATER_MS,
        flow=None,
        progress=lambda _kind, _count: None,
    )
    assert set(found.threads) == {parent.thread, child.thread} and not found.problems
    assert dispatcher.before_ms == [LATER_MS]
    assert listed(store) == [going.thread]
    assert target.threads.read(BUNDLE, parent.thread) == parent.sealed
    assert (target.blobs.get(blob), target.bundles.get(BUNDLE)) == (b"a picture", SOURCE)
    assert all(entry.archived for entry in target.threads.page(limit=10))
    found_there = check_store(target, progress=lambda _kind, _count: None).problems
    assert not [problem for problem in found_there if problem.startswith("registry")]
    assert sorted(store.threads.removed()) == sorted(target_ids(target))


def target_ids(target: DirectoryBackend) -> list[tuple[str, str]]:
    return [(entry.bundle, entry.id) for entry in target.threads.page(limit=10)]


def test_lists_of_one_ending_and_old_threads_are_found_by_index(
    store: StoreBackend, rows: Rows
) -> None:
    """However many threads have another one."""
    assert store
    plans = [
        sql.SQL(ENDED).format(columns=ENTRY_COLUMNS, of_flow=sql.SQL("")),
        page_of(
            Candidates(endings=frozenset(("failed", "killed"))), NEWEST, limit=50, newest_first=True
        ),
        page_of(Candidates(flow="demo"), NEWEST, limit=50, newest_first=True),
    ]
    rows.execute("SET enable_seqscan = off")
    for plan, index in zip(
        plans, ("threads_by_end", "threads_by_ending", "threads_of_flow"), strict=True
    ):
        statement, values = (
            plan if isinstance(plan, tuple) else (plan, [LATER_MS, ["failed"], -1, "", 100])
        )
        text = sql.SQL("EXPLAIN ") + (
            sql.SQL(statement) if isinstance(statement, str) else statement
        )
        found = "\n".join(row[0] for row in rows.execute(text, values))
        assert "Seq Scan" not in found and index in found, found


def test_a_range_of_threads_gives_its_space_back(store: StoreBackend, rows: Rows) -> None:
    """The next range has its partition before its first thread; an empty one is dropped. Without a
    partition of its own, a line is in that of the rest.
    """
    assert isinstance(store, PostgresStore)

    def partitions() -> set[str]:
        found = rows.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'thread_lines'::regclass"
        )
        return {name.removeprefix("thread_lines_") for (name,) in found}

    assert partitions() == {"first", "1", "rest"}
    first = put(store, Script.begun(BUNDLE, thread_id(1)).end("completed", result=None))
    rows.execute(f"ALTER TABLE threads ALTER number RESTART WITH {ranges.RANGE}")
    second = put(store, Script.begun(BUNDLE, thread_id(2)).end("completed", result=None))
    ranges.prepare_range(store._session, ranges.RANGE)
    ranges.prepare_range(store._session, ranges.RANGE)
    assert partitions() == {"first", "1", "2", "rest"}
    assert rows.execute("SELECT count(*) FROM thread_lines_1").fetchone() == (2,)
    rows.execute(f"ALTER TABLE threads ALTER number RESTART WITH {5 * ranges.RANGE}")
    last = started(store, 3)
    assert rows.execute("SELECT count(*) FROM thread_lines_rest").fetchone() == (5,)
    assert ranges.drop_empty_ranges(store._session) == ["thread_lines_2"]
    assert pruned(store).threads == (first, second)
    assert partitions() == {"6", "rest"}  # the one for those that follow the last
    assert store.threads.read(BUNDLE, last.thread) == last.sealed


def test_a_store_of_the_first_version_is_brought_to_this_one(postgres: PostgresServer) -> None:
    """Its threads keep their lines, and are found by flow and end as those that were started
    since.
    """
    schema = postgres.new_schema()
    failed = Script.begun(BUNDLE, thread_id(1), name="demo").end("failed", error={"message": "x"})
    going = Script.begun(BUNDLE, thread_id(2)).intent(1)
    said = {"success": False, "message": '{"end":"killed","timestamp":1,"chain":"A"}'}
    unsuccessful = Script.begun(BUNDLE, thread_id(3), name="other").end("completed", result=said)
    with postgres.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"SET search_path = {schema}")
        connection.execute(
            "CREATE TABLE migrations (version integer PRIMARY KEY, engine text NOT NULL, applied timestamptz NOT NULL DEFAULT now())"
        )
        connection.execute(files("uncaged_cluster").joinpath("sql", "0001.sql").read_bytes())
        connection.execute("INSERT INTO migrations VALUES (1, '0')")
        for one in (failed, going, unsuccessful):
            row = connection.execute(
                "INSERT INTO threads (name, bundle, place, by_thread, archived, lines, size_bytes, digest)"
                " VALUES (%s, %s, nextval('start_order'), false, false, %s, %s, %s) RETURNING number",
                [one.thread, one.bundle, len(one.sealed), len(one.data), one.digest],
            ).fetchone()
            assert row is not None
            connection.execute("INSERT INTO thread_notes VALUES (%s, '', NULL)", [row[0]])
            for position, line in enumerate(one.sealed):
                values = [row[0], position, line]
                connection.execute("INSERT INTO thread_lines VALUES (%s, %s, %s)", values)
    address = postgres.address(schema)
    with pytest.raises(RefusedError, match=f"needs {migrations.VERSION}"):
        open_store(address, create=False, is_visible=True)
    with closing(open_store(address, create=True, is_visible=True)) as store:
        assert isinstance(store, PostgresStore)
        assert store.threads.read(BUNDLE, going.thread) == going.sealed
        assert ids(store, ["failed"], "demo") == [failed.thread]
        assert ids(store, ["unsuccessful"], "other") == [unsuccessful.thread]
        assert ids(store, ["interrupted"]) == [going.thread]
        assert Descents(store).parent(entry_of(failed)) is None
        with store.threads.open(BUNDLE, failed.thread) as owner:
            owner.append(failed.control("resume").sealed[-1:])
        assert ids(store, ["running"]) == [going.thread, failed.thread]
        assert pruned(store).threads == (unsuccessful.thread,)
