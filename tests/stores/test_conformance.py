"""Conformance of a store: what `stores.protocol` says, for each implementation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from testbed.bundles import source, thread_id
from testbed.journals import NOW_MS, Script
from testbed.stored_threads import BUNDLE, SOURCE, entry_of, script, started
from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError, UsageError
from uncaged_bundles.ids import bundle_hash
from uncaged_engine.journal import chain, lines
from uncaged_engine.journal.journal import JournalBusy
from uncaged_engine.stores.protocol import (
    ChangedMeanwhile,
    StoreBackend,
    ThreadEntry,
    ThreadNotes,
)

from .conftest import Connect

SOURCES = [SOURCE, source("count", '\n    yield {"null": {"value": 2}}\n')]
HEAD = b'{"seq":0,"conversation":"x","timestamp":1'
INFO = b'{"tag":"ABCDEFGH","content":"\\u0000","timestamp":1}\n\x00\xff not UTF-8\n'


def test_a_bundle_is_kept_under_its_hash(backend: StoreBackend, connect: Connect) -> None:
    """Another opening of the store finds the bytes; putting them again changes nothing."""
    hashes = [backend.bundles.put(one) for one in SOURCES]
    assert [backend.bundles.put(one) for one in SOURCES] == hashes
    other = connect().bundles
    assert other.hashes() == sorted(hashes)
    assert [other.get(hash) for hash in hashes] == SOURCES
    with pytest.raises(NotFoundError):
        other.get(bundle_hash(b"no bundle"))


def test_a_bundle_that_cannot_run_here_is_kept(backend: StoreBackend) -> None:
    """A bundle with an effect of a package that is not installed, or of another version of the
    contract, is bytes like any other.
    """
    sources = [source("other", "\n    yield\n", policy={"of-a-package": {}}), b"contract = 2\n"]
    assert [backend.bundles.get(backend.bundles.put(one)) for one in sources] == sources


def test_a_blob_is_kept_under_its_hash(backend: StoreBackend, connect: Connect) -> None:
    """Any bytes are a blob; a missing one is damage, since a line names it."""
    contents = [b"", b"\0\xff\n", b"x" * 3_000_000]
    names = [backend.blobs.put(one) for one in contents]
    assert backend.blobs.put(contents[1]) == names[1]
    other = connect().blobs
    assert list(other.names()) == sorted(names)
    assert [other.get(name) for name in names] == contents
    for wrong in ("0" * 32, "../../etc/passwd", "'; drop table blobs; --"):
        with pytest.raises(DamagedError):
            other.get(wrong)


def test_a_registry_is_replaced_only_in_the_version_that_was_read(
    backend: StoreBackend, connect: Connect
) -> None:
    """The second of two writers that read the same version is refused."""
    registry, other = backend.registry, connect().registry
    assert registry.read() is None
    first = registry.replace(b"flows: {}\n", version=None)
    found = other.read()
    assert found is not None and (found.data, found.version) == (b"flows: {}\n", first)
    second = registry.replace(b"# \xc3\xa4\nflows: {}\n", version=first)
    assert second != first
    for stale in (first, None):
        with pytest.raises(ChangedMeanwhile):
            other.replace(b"", version=stale)
    found = other.read()
    assert found is not None and found.data == b"# \xc3\xa4\nflows: {}\n"


def test_a_document_is_changed_only_in_the_version_that_was_read(
    backend: StoreBackend, connect: Connect
) -> None:
    """Names of all folders are kept; the bytes are exact. A removal names the version, too."""
    names = ["dispatcher/preferences.json", "packs/git.yaml", "schedules/a.json", "selectors.json"]
    documents, other = backend.documents, connect().documents
    versions = {name: documents.replace(name, b"\0\xff\n", version=None) for name in names}
    assert other.names() == names
    with pytest.raises(ChangedMeanwhile):
        other.replace(names[0], b"", version=None)
    other.replace(names[0], b"", version=versions[names[0]])
    assert [found.data for name in names if (found := documents.read(name))] == [
        b"",
        *[b"\0\xff\n"] * 3,
    ]
    assert documents.read("schedules/none.json") is None
    with pytest.raises(ChangedMeanwhile):
        documents.remove(names[0], version=versions[names[0]])
    documents.remove(names[1], version=versions[names[1]])
    assert (other.read(names[1]), other.names()) == (None, [names[0], *names[2:]])
    with pytest.raises(ChangedMeanwhile):
        other.remove(names[1], version=versions[names[1]])


@pytest.mark.parametrize(
    "name",
    ["config.yaml", "keys/model", "../x", "schedules/../keys/x", "/x", "schedules/a.lock", ""],
)
def test_a_machines_own_file_is_no_document(backend: StoreBackend, name: str) -> None:
    """Keys, config and paths that leave the store are refused by name."""
    with pytest.raises(UsageError):
        backend.documents.read(name)
    with pytest.raises(UsageError):
        backend.documents.replace(name, b"", version=None)


def test_a_thread_has_the_bytes_of_its_lines(backend: StoreBackend, connect: Connect) -> None:
    """Another opening reads the same lines, from any of them on, and how far the thread is."""
    found = started(backend)
    threads = connect().threads
    assert threads.read(BUNDLE, found.thread) == found.sealed
    assert threads.read(BUNDLE, found.thread, from_line=2) == found.sealed[2:]
    assert threads.read(BUNDLE, found.thread, from_line=1, limit=2) == found.sealed[1:3]
    assert threads.read(BUNDLE, found.thread, from_line=99) == []
    assert threads.read_damaged(BUNDLE, found.thread) == found.data
    head = threads.head(BUNDLE, found.thread)
    absent = ThreadEntry(bundle=BUNDLE, id=thread_id(99))
    assert threads.heads([absent, ThreadEntry(bundle=BUNDLE, id=found.thread)]) == {
        found.thread: head
    }
    assert (head.lines, head.size_bytes, head.digest) == (5, len(found.data), found.digest)
    for bundle, thread in ((BUNDLE, thread_id(9)), (bundle_hash(b""), found.thread)):
        questions = (threads.read, threads.read_damaged, threads.head, threads.notes)
        for question in (*questions, threads.archive, threads.open):
            with pytest.raises(NotFoundError):
                question(bundle, thread)
        with pytest.raises(NotFoundError):
            threads.replace_info(bundle, thread, b"")


def test_a_thread_is_started_whole_or_not_at_all(backend: StoreBackend) -> None:
    """Lines that do not follow their chain, and none at all, leave nothing behind."""
    good = script()
    swapped = [*good.sealed[:3], good.sealed[4], good.sealed[3]]
    for wrong in ([], swapped, good.sealed[1:], [b"".join(good.sealed[:2])], [b"\0\n"]):
        with pytest.raises(DamagedError):
            backend.threads.start(entry_of(good), wrong, ThreadNotes(info=INFO, origin=b"{}"))
    assert backend.threads.page(limit=10) == []

    def broken() -> Iterator[bytes]:
        yield from good.sealed[:3]
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        backend.threads.start(entry_of(good), broken(), ThreadNotes())
    assert backend.threads.page(limit=10) == []
    backend.threads.start(entry_of(good), iter(good.sealed), ThreadNotes())
    assert backend.threads.notes(BUNDLE, good.thread) == ThreadNotes()


def test_both_ends_of_a_thread_are_read(backend: StoreBackend) -> None:
    """The first line of each, and the last ones, a long one among them; all if there are no more.
    One that is not there is left out.
    """
    found = started(backend, steps=3)
    other = script(2).step(3, outcome="v" * 100_000)
    backend.threads.start(entry_of(other), other.sealed, ThreadNotes())
    absent = ThreadEntry(bundle=BUNDLE, id=thread_id(9))
    head = backend.threads.head(BUNDLE, found.thread)
    for limit in (1, 3, len(found.sealed), 100):
        found_ends = backend.threads.ends([absent, entry_of(found), entry_of(other)], limit=limit)
        assert found_ends.keys() == {found.thread, other.thread}
        ends = found_ends[found.thread]
        assert (ends.head, ends.first) == (head, found.sealed[0])
        assert ends.last == found.sealed[-limit:]
        assert found_ends[other.thread].last == other.sealed[-limit:]


def test_threads_are_listed_from_either_end(backend: StoreBackend) -> None:
    """In pages, by the order of starts; an imported thread counts as the oldest."""
    for number, place in ((1, 0), (2, -1), (3, 0), (4, 0)):
        started(backend, number, place=place)
    whole = backend.threads.page(limit=10)
    assert [one.id for one in whole] == [thread_id(number) for number in (2, 1, 3, 4)]
    paged: list[ThreadEntry] = []
    while page := backend.threads.page(
        after=paged[-1] if paged else None, limit=3, newest_first=True
    ):
        paged += page
    assert paged == whole[::-1]


def test_an_id_is_unique_in_a_store(backend: StoreBackend) -> None:
    """The same id is refused, also under another bundle; the first thread stays."""
    first = started(backend)
    for other in (script(steps=1), script(bundle=bundle_hash(b"another"))):
        with pytest.raises(RefusedError):
            backend.threads.start(entry_of(other), other.sealed, ThreadNotes())
    assert backend.threads.read(BUNDLE, first.thread) == first.sealed
    assert len(backend.threads.page(limit=10)) == 1


def test_an_owner_appends_all_lines_or_none(backend: StoreBackend, connect: Connect) -> None:
    """A wrong line refuses the whole batch, and the owner goes on after it."""
    found = started(backend)
    size = len(found.sealed)
    with backend.threads.open(BUNDLE, found.thread) as owner:
        assert owner.head == backend.threads.head(BUNDLE, found.thread)
        found.intent(3).step(3)
        with pytest.raises(DamagedError):
            owner.append([found.sealed[size], found.sealed[size]])
        assert connect().threads.head(BUNDLE, found.thread).lines == size
        head = owner.append(found.sealed[size:])
        assert head == owner.head == connect().threads.head(BUNDLE, found.thread)
    assert connect().threads.read(BUNDLE, found.thread) == found.sealed
    with pytest.raises(JournalBusy):
        owner.append([])


def test_a_second_owner_is_refused_while_the_first_lives(
    backend: StoreBackend, connect: Connect
) -> None:
    """The thread is free again after the first one's close, which may be repeated."""
    found = started(backend)
    other = connect().threads
    owner = backend.threads.open(BUNDLE, found.thread)
    with pytest.raises(JournalBusy):
        other.open(BUNDLE, found.thread)
    with pytest.raises(JournalBusy):
        other.archive(BUNDLE, found.thread)
    fence = owner.fence
    owner.close()
    owner.close()
    with other.open(BUNDLE, found.thread) as second:
        assert second.fence > fence or second.fence == 0


def test_only_a_resume_follows_an_end(backend: StoreBackend) -> None:
    """Neither a batch with a line behind the end nor a later one is taken."""
    found = started(backend)
    size = len(found.sealed)
    found.add(lines.end("completed", {}, NOW_MS))
    late = Script(bundle=BUNDLE, thread=found.thread, digest=found.digest).intent(3)
    with backend.threads.open(BUNDLE, found.thread) as owner:
        with pytest.raises(JournalBusy):
            owner.append([*found.sealed[size:], *late.sealed])
        assert owner.head.lines == size
        owner.append(found.sealed[size:])
        with pytest.raises(JournalBusy):
            owner.append(late.sealed)
    with backend.threads.open(BUNDLE, found.thread) as owner:
        with pytest.raises(JournalBusy):
            owner.append(late.sealed)
        found.add(lines.control("resume", {}, NOW_MS))
        owner.append(found.sealed[-1:])
    assert backend.threads.read(BUNDLE, found.thread) == found.sealed


def test_a_follower_gets_each_line_once_as_it_comes(
    backend: StoreBackend, connect: Connect
) -> None:
    """First what is there, an empty list for a quiet time, then what another opening appends."""
    found = started(backend)
    size = len(found.sealed)
    seen: list[bytes] = []
    with closing(
        connect().threads.follow(BUNDLE, found.thread, from_line=1, timeout_s=0.01)
    ) as feed:
        while len(seen) < size - 1:
            seen += next(feed)
        assert next(feed) == []
        found.intent(3).step(3)

        def append() -> None:
            with backend.threads.open(BUNDLE, found.thread) as owner:
                owner.append(found.sealed[size : size + 1])
                owner.append(found.sealed[size + 1 :])

        writer = threading.Thread(target=append)
        writer.start()
        while len(seen) < len(found.sealed) - 1:
            seen += next(feed)
        writer.join()
        assert next(feed) == []
    assert seen == found.sealed[1:]
    with (
        pytest.raises(NotFoundError),
        closing(backend.threads.follow(BUNDLE, thread_id(9), timeout_s=0.01)) as feed,
    ):
        next(feed)


def test_what_is_beside_a_journal_is_kept(backend: StoreBackend, connect: Connect) -> None:
    """The debug log is replaced as a whole; the note of an imported thread stays."""
    found = script()
    origin = b'{"bytes": 1, "steps": 0, "importedMs": 1}\n'
    backend.threads.start(
        entry_of(found, place=-1), found.sealed, ThreadNotes(info=INFO, origin=origin)
    )
    other = connect().threads
    assert other.notes(BUNDLE, found.thread) == ThreadNotes(info=INFO, origin=origin)
    other.replace_info(BUNDLE, found.thread, b"")
    assert backend.threads.notes(BUNDLE, found.thread) == ThreadNotes(origin=origin)


def test_an_archived_thread_reads_as_before_and_is_unpacked_by_its_owner(
    backend: StoreBackend, connect: Connect
) -> None:
    """Packing changes neither lines nor order."""
    found, second = started(backend, 1, archived=True), started(backend, 2)
    threads = connect().threads
    for _ in range(2):
        threads.archive(BUNDLE, second.thread)
    assert [one.archived for one in threads.page(limit=10)] == [True, True]
    assert threads.read(BUNDLE, found.thread) == found.sealed
    assert threads.head(BUNDLE, found.thread).digest == found.digest
    with threads.open(BUNDLE, found.thread) as owner:
        found.intent(3)
        owner.append(found.sealed[-1:])
    assert backend.threads.read(BUNDLE, found.thread) == found.sealed
    assert [one.archived for one in threads.page(limit=10)] == [False, True]


def test_pages_are_in_the_order_of_starts(backend: StoreBackend, connect: Connect) -> None:
    """Imported threads come first, by id; then the others as they started, whatever their ids."""
    for number, place, by_thread in ((5, 0, False), (3, 0, True), (9, -1, False), (7, -1, False)):
        started(backend, number, place=place, by_thread=by_thread)
    started(backend, 1)
    threads = connect().threads
    whole = threads.page(limit=100)
    assert [one.id for one in whole] == [thread_id(number) for number in (7, 9, 5, 3, 1)]
    assert [one.by_thread for one in whole] == [False, False, False, True, False]
    assert [one.place < 0 for one in whole] == [True, True, False, False, False]
    paged: list[ThreadEntry] = []
    while page := threads.page(after=paged[-1] if paged else None, limit=2):
        assert len(page) <= 2
        paged += page
    assert paged == whole


def test_a_thread_is_located_by_the_start_of_its_id(
    backend: StoreBackend, connect: Connect
) -> None:
    """A start of several ids, of none, and a text that is none are different errors."""
    first, second = started(backend, 1), started(backend, 2, by_thread=True)
    threads = connect().threads
    assert threads.locate(first.thread.lower()).id == first.thread
    assert threads.locate(second.thread) == threads.page(limit=10)[1]
    for wrong in ("", second.thread[:8], second.thread + "0"):
        with pytest.raises(UsageError):
            threads.locate(wrong)
    for wrong in ("7Z", "%", "_", thread_id(3)):
        with pytest.raises(NotFoundError):
            threads.locate(wrong)


def test_a_marker_of_removal_is_kept(backend: StoreBackend, connect: Connect) -> None:
    """Markers have no thread, and are marked once."""
    for number in (2, 1, 2):
        backend.threads.mark_removed(BUNDLE, thread_id(number))
    assert connect().threads.removed() == [(BUNDLE, thread_id(1)), (BUNDLE, thread_id(2))]
    marked = [connect().threads.is_removed(BUNDLE, thread_id(number)) for number in range(3)]
    assert marked == [False, True, True]
    backend.bundles.put(SOURCE)
    marked = [connect().threads.is_removed(None, thread_id(number)) for number in range(3)]
    assert marked == [False, True, True]
    assert connect().threads.page(limit=10) == []


def test_a_pin_is_kept_until_it_is_released(backend: StoreBackend, connect: Connect) -> None:
    """Only a thread that is there is pinned; who releases one twice gets no error."""
    first, second = started(backend, 1), started(backend, 2)
    for one in (second, first, first):
        backend.threads.set_pinned(one.bundle, one.thread, pinned=True)
    assert connect().threads.pinned() == [(BUNDLE, first.thread), (BUNDLE, second.thread)]
    for _ in range(2):
        connect().threads.set_pinned(BUNDLE, first.thread, pinned=False)
    assert backend.threads.pinned() == [(BUNDLE, second.thread)]
    with pytest.raises(NotFoundError):
        backend.threads.set_pinned(BUNDLE, thread_id(3), pinned=True)


def test_a_conversation_is_chained_lines_under_one_owner(
    backend: StoreBackend, connect: Connect
) -> None:
    """A conversation begins whole, grows under its owner, and is refused when it does not fit."""
    name = thread_id(1)
    first, digest = chain.seal(chain.conversation_seed(name), HEAD)
    second, _ = chain.seal(digest, HEAD)
    mine, other = backend.conversations, connect().conversations
    for wrong in ([], [second], [first, first]):
        with pytest.raises(DamagedError):
            mine.start(name, wrong)
    assert mine.names() == []
    for question in (mine.read, mine.open):
        with pytest.raises(NotFoundError):
            question(name)
        with pytest.raises(UsageError):
            question("../x")
    mine.start(name, iter([first]))
    with pytest.raises(RefusedError):
        other.start(name, [first])
    with mine.open(name) as owner:
        with pytest.raises(JournalBusy):
            other.open(name)
        with pytest.raises(DamagedError):
            owner.append([first])
        assert owner.append([second]).lines == 2
    assert other.names() == [name]
    assert other.read(name) == [first, second]
    assert other.read(name, from_line=1) == [second]
    with other.open(name) as owner:
        assert owner.head.lines == 2
        with pytest.raises(JournalBusy):
            mine.remove(name)
    mine.remove(name)
    assert other.names() == []
    with pytest.raises(NotFoundError):
        other.remove(name)
    mine.start(name, [first])
    assert other.read(name) == [first]
