"""Pages of threads are those of the whole list, and cost what they show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from testbed.bundles import COUNT, granted, place_script, script_of
from uncaged_bundles.errors import UsageError
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine, ThreadSummary
from uncaged_engine.journal import archive
from uncaged_engine.state import index_file, observe
from uncaged_engine.threads import paging
from uncaged_engine.threads.filtering import ThreadFilter
from uncaged_engine.threads.paging import count

from benchmarks.thread_store import fill

THREADS = 250
FILTERS = (
    ThreadFilter(),
    ThreadFilter(statuses=("failed",)),
    ThreadFilter(statuses=("unsuccessful", "killed")),
    ThreadFilter(statuses=("paused", "interrupted")),
    ThreadFilter(statuses=("unknown",)),
    ThreadFilter(statuses=("running",)),
    ThreadFilter(flow="triage"),
    ThreadFilter(flow="nothing"),
    ThreadFilter(agent="codex"),
    ThreadFilter(agent='codex","'),
    ThreadFilter(min_cost=9.0),
    ThreadFilter(longer_than_s=3000),
    ThreadFilter(text="HAS NO such"),
    ThreadFilter(text="%' OR 1 --"),
    ThreadFilter(statuses=("completed",), flow="triage", agent="person", min_cost=1.0),
)


@pytest.fixture
def filled(engine: Engine) -> Engine:
    fill(engine, THREADS)
    return engine


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The threads whose journals a page reads."""
    seen: list[str] = []
    real = observe.read_summary

    def counted(store: Store, bundle: Any, thread: Any, path: Any) -> Any:
        seen.append(thread)
        return real(store, bundle, thread, path)

    monkeypatch.setattr(paging, "read_summary", counted)
    yield seen


def paged(engine: Engine, wanted: ThreadFilter, limit: int = 40) -> list[ThreadSummary]:
    """All threads that fit, page by page."""
    found: list[ThreadSummary] = []
    before: str | None = None
    while True:
        page = engine.page(wanted, before=before, limit=limit)
        assert len(page.threads) <= limit
        found += page.threads
        if (before := page.before) is None:
            return found


def same_as_the_list(engine: Engine) -> None:
    listed, now_ms = engine.threads(), engine.clock_ms()
    for wanted in FILTERS:
        assert paged(engine, wanted) == [one for one in listed if wanted.fits(one, now_ms)], wanted


def test_pages_are_parts_of_the_whole_list(filled: Engine) -> None:
    """Pages of any filter have the threads of the whole list in its order: from journals, from the
    index, and after changes that no worker made.
    """
    (filled.store.root / index_file.NAME).unlink(missing_ok=True)
    whole = paged(filled, ThreadFilter())
    assert len(whole) == THREADS
    same_as_the_list(filled)
    ended = [one for one in whole if one.status == "completed"]
    archive.compress(filled.store.locate_thread(ended[5].thread_id)[2])
    filled.remove_thread(ended[50].thread_id)
    for status in ("paused", "interrupted"):
        filled.kill(next(one.thread_id for one in whole if one.status == status))
    same_as_the_list(filled)


def test_a_page_reads_what_it_shows_and_the_index_does_not_decide(
    filled: Engine, read: list[str]
) -> None:
    """With the index, a page reads the journals of its threads with an open effect alone; a filter
    reads none that cannot fit.
    """
    filled.threads()
    shown = filled.page(limit=50).threads
    assert sorted(read) == sorted(
        one.thread_id for one in shown if one.status in ("interrupted", "waiting")
    )
    read.clear()
    assert filled.page(ThreadFilter(statuses=("failed",)), limit=5).threads
    assert filled.page(ThreadFilter(statuses=("completed",), min_cost=9.5), limit=5).threads
    numbers = count(filled.store)
    assert sum(numbers.statuses.values()) == THREADS
    assert read == []
    assert numbers.statuses["paused"] == len(paged(filled, ThreadFilter(statuses=("paused",))))


def test_a_thread_that_changed_under_its_lock_is_read_anew(filled: Engine, read: list[str]) -> None:
    """A paused thread that is killed without a worker is found by its new status, and is read
    once.
    """
    paused = filled.page(ThreadFilter(statuses=("paused",)), limit=1).threads[0]
    filled.threads()
    filled.kill(paused.thread_id)
    read.clear()
    killed = paged(filled, ThreadFilter(statuses=("killed",)))
    assert paused.thread_id in {one.thread_id for one in killed}
    assert read == [paused.thread_id]
    paged(filled, ThreadFilter(statuses=("killed",)))
    assert read == [paused.thread_id]


def test_a_page_ends_early_rather_than_read_all_journals(filled: Engine) -> None:
    """Without an index, a filter that fits few threads comes in several pages, each after so many
    journals.
    """
    wanted, found, pages = ThreadFilter(statuses=("limit",)), 0, 0
    before: str | None = None
    while True:
        page = filled.page(wanted, before=before, most_read=100)
        found, pages, before = found + len(page.threads), pages + 1, page.before
        if before is None:
            break
    assert pages == 3
    assert found == len(paged(filled, wanted)) > 0
    (filled.store.root / index_file.NAME).unlink()
    assert (count(filled.store, most_read=100).unread, count(filled.store).unread) == (150, 0)


@pytest.mark.parametrize("text", ["", "1", "1.x.y", "9" * 30 + ".01KQXKW0000000000000000000."])
def test_a_place_that_is_none_is_refused(engine: Engine, text: str) -> None:
    """A page after a place that no page gave is an error of the caller."""
    with pytest.raises(UsageError, match="no place"):
        engine.page(before=text)


def test_hostile_rows_name_no_files(engine: Engine) -> None:
    """A row whose hash or id is a path is passed over."""
    bundle = granted(engine.store, COUNT)
    placed = place_script(engine.store, bundle, script_of(bundle).done(1).end("completed"))
    engine.threads()
    assert [one.thread_id for one in engine.page().threads] == [placed.thread]

    def spoil(connection: Any) -> None:
        connection.execute("INSERT INTO threads (thread, hash) VALUES ('../../etc', '../..')")

    index_file.ask(engine.store, spoil)
    assert [one.thread_id for one in engine.page().threads] == [placed.thread]
