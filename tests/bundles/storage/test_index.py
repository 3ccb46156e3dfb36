"""The registry's index: what it serves, what it never serves, and when it is rebuilt."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from testbed.straced import calls_of, strace
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage import registry as registry_module
from uncaged_bundles.storage.entries import find_flow, grant_row
from uncaged_bundles.storage.files import changing
from uncaged_bundles.storage.index import (
    RACY_NS,
    Index,
    IndexHead,
    IndexMismatch,
    IndexRow,
    digest,
    encode_rows,
    opened,
    stamp_of,
    write_index,
)
from uncaged_bundles.storage.registry import Registry, digest_of
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

MakeBundle = Callable[..., Bundle]
HASHES = ("C9NMV6V2TQT81", "EYHPV6X8XHTCS")
OLD_NS = 1_700_000_000_000_000_000


def entry(number: int, hash: str = HASHES[0]) -> str:
    return f"  flow-{number:05}:\n    hash: {hash}\n    timestamp: {number}\n"


@pytest.fixture
def index_path(store: Store) -> Path:
    return store.root / "workflow.index"


def fill(store: Store, count: int) -> None:
    """Write a registry as a person's script would, long ago."""
    store.registry_path.write_text("workflows:\n" + "".join(map(entry, range(count))))
    os.utime(store.registry_path, ns=(OLD_NS, OLD_NS))


def test_a_second_read_parses_no_yaml(registry: Registry, store: Store) -> None:
    """A process that finds a fitting index answers every question about flows without the parser's
    module.
    """
    fill(store, 50)
    registry.read()
    code = (
        "import sys; from pathlib import Path; from uncaged_bundles.storage.registry import Registry; "
        "from uncaged_bundles.storage.store import Store; registry = Registry(Store.open(Path(sys.argv[1]))); "
        "assert registry.flow('flow-00007').timestamp_ms == 7; assert registry.resolve('flow-00008'); "
        "assert len(registry.read().flows) == 50; "
        "assert len(registry.names('flow-0000')) == 10; assert registry.flow('other') is None; assert 'yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(store.root)], check=True)


@pytest.mark.slow
@pytest.mark.needs("strace")
def test_a_lookup_reads_a_few_blocks(registry: Registry, store: Store, tmp_path: Path) -> None:
    """A lookup among five thousand names reads some kilobytes of the index, and the entry's own
    lines of the registry.
    """
    fill(store, 5000)
    registry.read()
    code = (
        "import sys; from pathlib import Path; from uncaged_bundles.storage.registry import Registry; "
        "from uncaged_bundles.storage.store import Store; assert Registry(Store.open(Path(sys.argv[1]))).flow('flow-01234')"
    )
    log = tmp_path / "log"
    subprocess.run(
        [*strace(log, calls=("read", "pread64")), sys.executable, "-c", code, str(store.root)],
        check=True,
    )
    read = [
        sum(call.result or 0 for call in calls_of(log) if f"/workflow.{end}>" in call.arguments)
        for end in ("yaml", "index")
    ]
    assert read[0] == len(entry(1234))
    assert read[1] < 40_000 < (store.root / "workflow.index").stat().st_size / 10


@pytest.mark.parametrize("cut", [0, 1, 30, 200, -1, -40])
def test_a_truncated_index_is_rebuilt(
    registry: Registry, store: Store, index_path: Path, cut: int
) -> None:
    """Whatever is left of it, the answers are the text's."""
    fill(store, 30)
    registry.read()
    index_path.write_bytes(index_path.read_bytes()[:cut])
    assert registry.flow("flow-00029") == registry.read().flows["flow-00029"]
    assert len(registry.names()) == 30


SEALED = [
    digest(text).encode() + b" " + text + b"\n"
    for text in (b"[]", b'{"format": 0}', b'{"format": 1}', b"{" * 100_000, b"null")
]


@pytest.mark.parametrize("foreign", [b"\0" * 4096, b"[]\n", b"SQLite format 3\0", *SEALED])
def test_a_foreign_index_is_rebuilt(
    registry: Registry, store: Store, index_path: Path, foreign: bytes
) -> None:
    """A file of something else, or of another version, is replaced by one that fits."""
    fill(store, 3)
    index_path.write_bytes(foreign)
    assert list(registry.read().flows) == ["flow-00000", "flow-00001", "flow-00002"]
    assert foreign not in index_path.read_bytes()
    found = registry.indexed_flow("flow-00002")
    assert found is not None and found.hash == HASHES[0]


def test_no_flipped_byte_changes_an_answer(
    registry: Registry, store: Store, index_path: Path
) -> None:
    """A damaged byte anywhere leads to the right answer, about a name that is there and about one
    that is not.
    """
    store.registry_path.write_text(
        "removed: [gone]\nseeded: [one]\nworkflows:\n" + "".join(map(entry, range(4)))
    )
    truth = registry.read()
    whole = index_path.read_bytes()
    for place in range(0, len(whole), 7):
        index_path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert registry.flow("flow-00002") == truth.flows["flow-00002"], place
        assert registry.flow("flow-00009") is None
        assert registry.read() == truth, place


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_pipe_or_a_link_in_its_place_is_replaced(
    registry: Registry, store: Store, index_path: Path, tmp_path: Path, kind: str
) -> None:
    """Neither is waited for nor written through."""
    fill(store, 3)
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    if kind == "pipe":
        os.mkfifo(index_path)
    else:
        index_path.symlink_to(target)
    assert len(registry.names()) == 3
    assert (index_path.is_file(), index_path.is_symlink(), target.read_bytes()) == (
        True,
        False,
        b"precious",
    )


def test_a_directory_in_its_place_is_done_without(
    registry: Registry, store: Store, index_path: Path
) -> None:
    """A store that cannot take an index is read and changed all the same."""
    index_path.mkdir()
    fill(store, 3)
    registry.set_enabled("flow-00001", False)
    assert [flow.enabled for flow in registry.read().flows.values()] == [True, False, True]


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("has_index", [True, False])
def test_a_read_only_store_is_read(
    registry: Registry, store: Store, index_path: Path, has_index: bool
) -> None:
    """Neither the lock nor the index can be written there; the answers come, and no traceback."""
    fill(store, 5)
    if has_index:
        registry.read()
    else:
        index_path.unlink(missing_ok=True)
    code = (
        "import sys; from pathlib import Path; from uncaged_bundles.storage.registry import Registry; "
        "from uncaged_bundles.storage.store import Store; print(*Registry(Store.open(Path(sys.argv[1]))).names())"
    )
    read_only = [
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        sys.executable,
        "-c",
        code,
        str(store.root),
    ]
    done = subprocess.run(read_only, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == ([f"flow-{number:05}" for number in range(5)], "")
    assert index_path.exists() == has_index


def test_a_change_that_takes_long_does_not_stop_a_reader(
    registry: Registry, store: Store, index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a valid index, a reader that does not get the lock of the registry parses the text
    and writes no index.
    """
    monkeypatch.setattr(registry_module, "READ_TIMEOUT_S", 0.0)
    fill(store, 2)
    with changing(store.registry_path, timeout_s=0):
        assert len(registry.read().flows) == 2
        assert not index_path.exists()
    assert len(registry.read().flows) == 2
    assert index_path.exists()


def test_an_edit_by_hand_is_seen_at_once(registry: Registry, store: Store) -> None:
    """In place or by another file in its place, of the same size and with the same time of
    change.
    """
    fill(store, 3)
    assert registry.resolve("flow-00001")[1] == HASHES[0]
    edited = store.registry_path.read_text().replace(entry(1), entry(1, HASHES[1]))
    store.registry_path.write_text(edited)
    os.utime(store.registry_path, ns=(OLD_NS, OLD_NS))
    assert registry.resolve("flow-00001")[1] == HASHES[1]
    other = store.root / "editor"
    other.write_text(edited.replace(entry(2), entry(2, HASHES[1])))
    os.utime(other, ns=(OLD_NS, OLD_NS))
    other.rename(store.registry_path)
    assert registry.resolve("flow-00002")[1] == HASHES[1]


def index_of_another_text(store: Store, index_path: Path, *, age_ns: int) -> None:
    """Leave what an edit within one tick of the clock would: an index with the file's stamp, made
    of other bytes.
    """
    Registry(store).read()
    head, _, rows = index_path.read_bytes().partition(b"\n")
    found = store.registry_path.stat()
    write_index(
        index_path,
        replace(IndexHead.decode(head), text=digest(b"before the edit")),
        rows,
        taken_ns=found.st_mtime_ns + age_ns,
    )


def test_an_edit_within_a_tick_of_the_clock_is_seen(store: Store, index_path: Path) -> None:
    """While a text is young the stamp alone proves nothing, and its digest is compared; later the
    stamp is enough.
    """
    fill(store, 3)
    index_of_another_text(store, index_path, age_ns=RACY_NS - 1)
    with pytest.raises(IndexMismatch), opened(index_path, store.registry_path):
        pass
    index_of_another_text(store, index_path, age_ns=RACY_NS)
    with opened(index_path, store.registry_path) as index:
        assert find_flow(index, "flow-00001")


def test_a_young_text_is_compared_until_it_is_old(store: Store, index_path: Path) -> None:
    """A reader that compares the digest of an old text notes the time, and the next reader compares
    nothing.
    """
    fill(store, 3)
    Registry(store).read()
    os.utime(index_path, ns=(OLD_NS, OLD_NS))
    with opened(index_path, store.registry_path):
        pass
    assert index_path.stat().st_mtime_ns > OLD_NS + RACY_NS


def test_a_crash_between_text_and_index_is_harmless(
    registry: Registry, index_path: Path, make_bundle: MakeBundle
) -> None:
    """The former index no longer fits, and the next reader rebuilds it."""
    registry.add("one", make_bundle(description="1"), now_ms=1)
    former = index_path.read_bytes()
    registry.add("two", make_bundle(description="2"), now_ms=2)
    index_path.write_bytes(former)
    assert registry.indexed_flow("two") is None
    assert list(registry.read().flows) == ["one", "two"]
    assert registry.indexed_flow("two") is not None


def test_the_index_is_for_its_owner_alone(
    registry: Registry, store: Store, index_path: Path
) -> None:
    """The index has no more facts than the registry, and its mode is as strict."""
    fill(store, 1)
    former = os.umask(0)
    try:
        registry.read()
    finally:
        os.umask(former)
    assert index_path.stat().st_mode & 0o777 == 0o600


def forge(store: Store, index_path: Path, row: IndexRow) -> None:
    """Write an index with one more row, in which every digest is right."""
    Registry(store).read()
    text = store.registry_path.read_bytes()
    with opened(index_path, store.registry_path) as index:
        rows = encode_rows([row, *index.rows("grants"), *index.rows("workflows")])
        head = replace(
            index.head,
            rows=digest(rows),
            stamp=stamp_of(store.registry_path.stat()),
            text=digest(text),
        )
    write_index(index_path, head, rows, taken_ns=store.registry_path.stat().st_mtime_ns + RACY_NS)


@pytest.mark.parametrize("is_in_the_text", [True, False])
def test_a_forged_row_grants_nothing(
    registry: Registry,
    store: Store,
    index_path: Path,
    make_bundle: MakeBundle,
    is_in_the_text: bool,
) -> None:
    """A grant counts only if the lines of the registry have its digest; in the control they have
    it, and this very row grants.
    """
    bundle = make_bundle(policy={"null": {}})
    grant = (
        f"  {bundle.hash}:\n    policy: {{'null': {{}}}}\n    digest: {digest_of(bundle)}\n"
        if is_in_the_text
        else entry(7)
    )
    store.registry_path.write_text(
        f"workflows:\n{entry(1)}{entry(2)}" + (f"grants:\n{grant}" if is_in_the_text else "")
    )
    start = store.registry_path.read_text().find(grant) if is_in_the_text else len("workflows:\n")
    lines = store.registry_path.read_bytes()[start : start + len(grant)]
    forge(
        store,
        index_path,
        grant_row(BundleHash(bundle.hash), digest_of(bundle), (start, start + len(grant)), lines),
    )
    assert registry.granted(bundle) == is_in_the_text


def test_readers_while_it_is_rebuilt_get_right_answers(registry: Registry, store: Store) -> None:
    """Eight processes that find no index at the same moment all answer, and leave one."""
    fill(store, 300)
    code = (
        "import sys; from pathlib import Path; from uncaged_bundles.storage.registry import Registry; "
        "from uncaged_bundles.storage.store import Store; print(len(Registry(Store.open(Path(sys.argv[1]))).names()))"
    )
    command = [sys.executable, "-c", code, str(store.root)]
    readers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    assert [reader.communicate() for reader in readers] == [("300\n", "")] * 8
    last = registry.indexed_flow("flow-00299")
    assert last is not None and last.hash == HASHES[0]
    assert not list(store.root.glob(".*.tmp"))


def test_an_index_in_memory_answers_like_a_file(
    registry: Registry, store: Store, index_path: Path
) -> None:
    """An index in memory finds the rows that the file has, by name and by prefix."""
    fill(store, 40)
    registry.read()
    line, _, rows = index_path.read_bytes().partition(b"\n")
    index = Index.of(IndexHead.decode(line), rows, store.registry_path.read_bytes())
    for number in range(40):
        assert find_flow(index, f"flow-{number:05}") == registry.flow(f"flow-{number:05}")
    for name in ("", "flow", "flow-0000", "flow-00040", "zzz", "flow-00001-x", "\udc80", "a\nb"):
        assert find_flow(index, name) is None
        assert [row.key for row in index.rows("workflows", name)] == [
            one for one in registry.read().flows if one.startswith(name)
        ]
