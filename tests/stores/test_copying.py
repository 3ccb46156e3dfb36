"""Copies of whole stores, through each implementation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from testbed.filled_stores import (
    CHILD,
    IMPORTED,
    LONG,
    ORIGIN,
    PACKED,
    REMOVED,
    bundle_of,
    filled,
    more_lines,
    shared_files,
)
from testbed.foreground import at_window, environment
from testbed.interleaving import just_after
from testbed.windows import place
from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.document import Document
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.snapshot import read_document
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import chain
from uncaged_engine.journal.origin import path_beside
from uncaged_engine.stores import copying
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.copying import CopyReport, copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.stores.protocol import StoreBackend
from uncaged_engine.stores.reading import KINDS


def directory(root: Path) -> DirectoryBackend:
    return DirectoryBackend.open(root, create=True)


def copy(source: StoreBackend, target: StoreBackend, *, replace: bool = False) -> CopyReport:
    return copy_store(source, target, replace=replace, progress=lambda _kind, _count: None)


def copied(report: CopyReport) -> dict[str, int]:
    """Return how many items of each kind were copied, without zeros."""
    return {kind: found.copied for kind, found in report.counts.items() if found.copied}


def lines_of(store: StoreBackend, thread: ThreadId) -> bytes:
    """Return all lines of a thread, however many the store returns at once."""
    [bundle], lines = store.bundles.hashes(), list[bytes]()
    while more := store.threads.read(bundle, thread, from_line=len(lines)):
        lines += more
    return b"".join(lines)


@pytest.fixture
def source(tmp_path: Path) -> Store:
    return filled(tmp_path / "source")


def test_a_store_is_copied_there_and_back(
    source: Store, backend: StoreBackend, tmp_path: Path
) -> None:
    """The copy of a copy has the same bytes and the same order; a machine's own files stay behind,
    and a second run copies nothing.
    """
    report = copy(directory(source.root), backend)
    assert report.problems == [] and report.unfinished == 4
    assert copied(report) == {
        "bundles": 1,
        "blobs": 1,
        "threads": 4,
        "conversations": 1,
        "documents": 4,
        "registry": 1,
    }
    assert backend.threads.removed() == [(bundle_of(source), REMOVED)]
    assert [one.id for one in backend.threads.page(limit=9)] == [IMPORTED, LONG, CHILD, PACKED]
    back = tmp_path / "back"
    assert copy(backend, directory(back)).problems == []
    assert shared_files(back) == shared_files(source.root)
    assert not any(
        (back / name).exists()
        for name in ("config.yaml", "keys", "browser-pairings.json", "notifications.jsonl")
    )
    for origin, target in ((directory(source.root), backend), (backend, directory(back))):
        again = copy(origin, target)
        assert copied(again) == {} and again.problems == []
        assert sum(found.present for found in again.counts.values()) == 12
    checked = check_store(backend, progress=lambda _kind, _count: None)
    assert checked.problems == []
    assert [checked.counts[kind] for kind in (*KINDS, "lines")] == [1, 1, 4, 1, 4, 1, 2012]


def test_a_second_copy_brings_what_was_added(
    source: Store, backend: StoreBackend, tmp_path: Path
) -> None:
    """Threads, archived ones included, and conversations go on; a live owner hinders no reader."""
    copy(directory(source.root), backend)
    for thread in (LONG, PACKED):
        more_lines(source, thread, 3)
    info = source.info_path(bundle_of(source), LONG)
    info.write_bytes(info.read_bytes() + b"more\n")
    with directory(source.root).conversations.open(LONG) as owner:
        owner.append([chain.seal(owner.head.digest, b'{"seq":1,"timestamp":1')[0]])
    with directory(source.root).threads.open(bundle_of(source), LONG):
        report = copy(directory(source.root), backend)
    assert report.problems == []
    assert copied(report) == {"threads": 2, "conversations": 1}
    back = tmp_path / "back"
    copy(backend, directory(back))
    assert shared_files(back) == shared_files(source.root)


@pytest.mark.slow
def test_a_copy_dies_between_two_batches_of_a_thread(
    source: Store, address: str, backend: StoreBackend
) -> None:
    """The target's thread has an exact prefix, is free, and the next copy goes on from there."""
    copy(directory(source.root), backend)
    more_lines(source, LONG, 2500)
    whole = source.data_path(bundle_of(source), LONG).read_bytes()
    python = at_window(place(Path(copying.__file__), "owner.append(batch)"), "uncaged_cli", count=3)
    words = ["store", "copy", str(source.root), address]
    done = subprocess.run(
        [sys.executable, *python, *words],
        env=environment(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == -9, done.stderr
    head = backend.threads.head(bundle_of(source), LONG)
    assert head.lines == 2001 + 2000
    assert whole[: head.size_bytes] == lines_of(backend, LONG)
    # a server needs a moment to notice that its client is gone
    while (report := copy(directory(source.root), backend)).problems:
        assert all("has an owner" in problem for problem in report.problems)
    assert copied(report) == {"threads": 1}
    assert lines_of(backend, LONG) == whole


def test_a_thread_that_is_removed_meanwhile_is_not_brought_back(
    source: Store, backend: StoreBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target's thread leaves it after the copy has read the target's markers; the source has
    the first of its lines, behind which a resume would perform the others again.
    """
    bundle = bundle_of(source)
    just_after(
        monkeypatch,
        type(backend.threads),
        "removed",
        lambda: backend.threads.mark_removed(bundle, LONG),
    )
    assert copy(directory(source.root), backend).problems == []
    with pytest.raises(NotFoundError):
        backend.threads.head(bundle, LONG)


def test_a_target_that_went_on_is_left_as_it_is(source: Store, backend: StoreBackend) -> None:
    """A thread with more lines in the target counts as present, its debug log stays, as does
    another log beside the same lines.
    """
    copy(directory(source.root), backend)
    bundle = bundle_of(source)
    backend.threads.replace_info(bundle, LONG, b"of the target\n")
    with backend.threads.open(bundle, CHILD) as owner:
        owner.append([chain.seal(owner.head.digest, b'{"control":"note","timestamp":1')[0]])
        head = owner.head
    report = copy(directory(source.root), backend)
    assert report.problems == [] and copied(report) == {}
    assert backend.threads.head(bundle, CHILD) == head
    assert backend.threads.notes(bundle, LONG).info == b"of the target\n"


def test_other_contents_of_a_target_are_named_and_left(
    source: Store, backend: StoreBackend
) -> None:
    """Each item that differs is a problem, all others are copied; --replace writes the entry of the
    flow and the documents.
    """
    bundle = bundle_of(source)
    copy(directory(source.root), backend)
    for thread, other in ((CHILD, "a"), (LONG, "b")):
        path = source.data_path(bundle, thread)
        path.unlink()
        seed = chain.seed(bundle, thread)
        path.write_bytes(
            chain.seal(seed, f'{{"format":1,"name":"{other}","timestamp":1'.encode())[0]
        )
    path_beside(source.data_path(bundle, IMPORTED)).unlink()
    conversation = chain.seal(chain.conversation_seed(LONG), b'{"seq":0,"timestamp":9')[0]
    (source.root / "conversations" / f"{LONG}.jsonl").write_bytes(conversation)
    (source.root / "selectors.json").write_bytes(b"other")
    Registry(source).set_enabled("count", False)
    report = copy(directory(source.root), backend)
    for word, problem in zip(
        (IMPORTED, LONG, CHILD, LONG, "selectors.json", "flow 'count'"),
        report.problems,
        strict=True,
    ):
        assert word in problem and backend.address in problem
    imported = f"imported from a file in {backend.address}, but counts as started"
    assert imported in report.problems[0] and "thread rm" in report.problems[0]
    assert backend.threads.head(bundle, LONG).lines == 2001
    assert backend.threads.notes(bundle, IMPORTED).origin == ORIGIN
    replaced = copy(directory(source.root), backend, replace=True)
    assert len(replaced.problems) == 4
    assert copied(replaced) == {"documents": 1, "registry": 1}
    found = backend.registry.read()
    assert found is not None and found.data == source.registry_path.read_bytes()


def test_registries_are_joined_while_the_target_changes(
    source: Store, backend: StoreBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow that another process adds to the target meanwhile stays, beside those that the copy
    adds. One that changes the target each time ends the copy of the registry with a problem.
    """
    copy(directory(source.root), backend)
    bundle = bundle_of(source)
    Registry(source).add("slow", source.load_bundle(bundle), now_ms=2)
    registry, replace = backend.registry, backend.registry.replace

    def changed_before(times: int) -> None:
        left = list(range(times))

        def other(data: bytes, *, version: str | None) -> str:
            if left:
                found = registry.read()
                assert found is not None
                line = f"  own{left.pop()}: {{hash: {bundle}, timestamp: 1}}\n".encode()
                text = found.data.replace(b"workflows:\n", b"workflows:\n" + line)
                replace(text, version=found.version)
            return replace(data, version=version)

        monkeypatch.setattr(
            type(registry), "replace", lambda _self, *args, **words: other(*args, **words)
        )

    changed_before(99)
    [problem] = copy(directory(source.root), backend).problems
    assert "again and again" in problem
    changed_before(1)
    report = copy(directory(source.root), backend)
    assert report.problems == [] and report.grants == 0
    assert (report.counts["registry"].copied, report.counts["registry"].present) == (1, 1)
    found = registry.read()
    assert found is not None
    snapshot, _ = read_document(Document.parse(found.data, "joined"), "joined")
    assert {"count", "slow", "own0"} <= snapshot.flows.keys()


def test_a_source_that_lies_is_not_believed(source: Store, backend: StoreBackend) -> None:
    """A thread, a blob, a bundle and a conversation with other bytes than their chain or hash are
    named, and are not in the target; the rest is.
    """
    bundle = bundle_of(source)
    flipped = (
        source.data_path(bundle, LONG),
        source.bundle_path(bundle),
        next(source.blobs.iterdir()),
        source.root / "conversations" / f"{LONG}.jsonl",
    )
    for path in flipped:
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
    report = copy(directory(source.root), backend)
    assert [problem.partition(":")[0] for problem in report.problems] == [
        "bundles",
        "blobs",
        "threads",
        "conversations",
    ]
    assert copied(report) == {"threads": 3, "documents": 4, "registry": 1}
    assert LONG not in [one.id for one in backend.threads.page(limit=9)]
    checked = check_store(backend, progress=lambda _kind, _count: None)
    # three threads lack their bundle, and so does the flow
    assert len(checked.problems) == 4
    assert all(f"bundle {bundle}" in problem for problem in checked.problems)


def test_a_torn_tail_is_not_copied(source: Store, backend: StoreBackend) -> None:
    """A line that its writer did not finish is no line."""
    path = source.data_path(bundle_of(source), CHILD)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq":2,"intent":{"nu')
    assert copy(directory(source.root), backend).problems == []
    assert b"".join(backend.threads.read(bundle_of(source), CHILD)) == whole


def test_a_store_is_not_copied_into_itself(source: Store, tmp_path: Path) -> None:
    """A link to the same directory is recognised."""
    (tmp_path / "link").symlink_to(source.root)
    with pytest.raises(RefusedError, match="both the source and the target"):
        copy(directory(source.root), directory(tmp_path / "link"))
