from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from uncaged_bundles.errors import BundleError, DamagedError, NotFoundError, UsageError
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.storage.store import HOME_VARIABLE, Store
from uncaged_bundles.validation.validate import Bundle

MakeBundle = Callable[..., Bundle]
HASH = BundleHash("EYHPV6X8XHTCS")
OTHER = BundleHash("C9NMV6V2TQT81")


def add_thread(store: Store, hash: BundleHash, now_ms: int, suffix: str = "") -> ThreadId:
    thread_id = new_thread_id(now_ms, bytes(10))
    path = store.data_path(hash, thread_id)
    path.parent.mkdir(exist_ok=True)
    path.with_name(path.name + suffix).touch()
    return thread_id


def test_a_store_is_private(tmp_path: Path) -> None:
    """Every directory that opening makes is for its owner alone, the ones above included."""
    store = Store.open(tmp_path / "a" / "b")
    directories = [
        tmp_path / "a",
        store.root,
        store.bundles,
        store.logs,
        store.blobs,
        store.work,
        store.run,
    ]
    assert [path.stat().st_mode & 0o777 for path in directories] == [0o700] * 7
    assert Store.open(tmp_path / "a" / "b") == store


def test_the_environment_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument wins over the variable, the variable over the home directory; an empty variable
    is none.
    """
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "named"))
    assert Store.open().root == tmp_path / "named"
    assert Store.open(tmp_path / "given").root == tmp_path / "given"
    monkeypatch.setenv(HOME_VARIABLE, "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert Store.open().root == tmp_path / "home" / ".uncaged" / "workflow"


def test_a_relative_store_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers start in other directories and must mean the same store."""
    monkeypatch.chdir(tmp_path)
    assert Store.open(Path("here")).root == tmp_path / "here"


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    """The error names the path and the variable that changes it."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=rf"file' cannot be the store \(.*\); set {HOME_VARIABLE}"):
        Store.open(tmp_path / "file")


def test_a_stored_bundle_is_loaded_as_it_was(store: Store, make_bundle: MakeBundle) -> None:
    """The bytes that were hashed are the bytes that come back."""
    bundle = make_bundle(policy={"null": {}})
    store.put_bundle(bundle)
    assert store.load_bundle(bundle.hash) == bundle
    assert store.load_bundle(BundleHash(bundle.hash.lower())).hash == bundle.hash
    assert store.find_bundles() == [bundle.hash]


def test_the_descriptor_lies_beside_it_for_readers(store: Store, make_bundle: MakeBundle) -> None:
    """A copy in YAML, in the order of the file, with letters as they are."""
    bundle = make_bundle(description="für alle", examples=[["a"], {"b": None}])
    store.put_bundle(bundle)
    text = (store.bundles / f"{bundle.hash}.yaml").read_text()
    assert yaml.safe_load(text) == bundle.descriptor.raw
    assert text.startswith("contract: 1\nname: demo\ndescription: für alle\n")


def test_stored_bytes_are_never_rewritten(store: Store, make_bundle: MakeBundle) -> None:
    """Putting the same bundle again touches nothing; a copy that a crash left out is added."""
    bundle = make_bundle()
    store.put_bundle(bundle)
    path = store.bundle_path(bundle.hash)
    before = path.stat().st_ino
    path.with_suffix(".yaml").unlink()
    store.put_bundle(bundle)
    assert path.stat().st_ino == before
    assert path.with_suffix(".yaml").exists()
    assert len(list(store.bundles.iterdir())) == 2


def test_other_bytes_under_the_same_hash_are_not_replaced(
    store: Store, make_bundle: MakeBundle
) -> None:
    """XXH64 can be made to collide on purpose: the second bundle is refused."""
    bundle = make_bundle()
    store.bundle_path(bundle.hash).write_bytes(b"another")
    with pytest.raises(DamagedError, match="holds other bytes"):
        store.put_bundle(bundle)
    assert store.bundle_path(bundle.hash).read_bytes() == b"another"


@pytest.mark.parametrize("position", [0, 40, -1])
def test_a_flipped_byte_is_found_at_every_load(
    store: Store, make_bundle: MakeBundle, position: int
) -> None:
    """The hash is computed again; the error names the file and what it hashes to now."""
    bundle = make_bundle()
    store.put_bundle(bundle)
    path = store.bundle_path(bundle.hash)
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    with pytest.raises(
        DamagedError,
        match=rf"{bundle.hash}\.py: its bytes have the hash [0-9A-Z]{{13}}, the file was changed",
    ):
        store.load_bundle(bundle.hash)


def test_a_missing_bundle_is_not_found(store: Store) -> None:
    """The error names the hash."""
    with pytest.raises(NotFoundError, match=HASH):
        store.load_bundle(HASH)


def test_a_stored_file_is_validated_again(store: Store, make_bundle: MakeBundle) -> None:
    """Loading asks for the effects that are known now, not then."""
    bundle = make_bundle(policy={"null": {}})
    store.put_bundle(bundle)
    with pytest.raises(BundleError, match=r"descriptor\.policy\.null"):
        store.load_bundle(bundle.hash, {})


@pytest.mark.parametrize(
    "text", ["../../etc/passwd", "", "EYHPV6X8XHTC/", "EYHPV6X8XHTC\0", "a" * 300]
)
def test_no_text_becomes_a_path_unchecked(store: Store, text: str) -> None:
    """Every path is made from an id that was read first."""
    with pytest.raises(UsageError):
        store.bundle_path(BundleHash(text))
    with pytest.raises(UsageError):
        store.data_path(BundleHash(text), new_thread_id(1, bytes(10)))
    with pytest.raises(UsageError):
        store.data_path(HASH, ThreadId(text))
    with pytest.raises(UsageError):
        store.info_path(HASH, ThreadId(text))


def test_threads_are_found_among_strangers(store: Store) -> None:
    """Plain and archived journals, each thread once; whatever else lies there is passed over."""
    plain = add_thread(store, HASH, 1)
    archived = add_thread(store, HASH, 2, suffix=".zst")
    both = add_thread(store, OTHER, 3)
    add_thread(store, OTHER, 3, suffix=".zst")
    strangers = [
        f"{plain.lower()}.data.jsonl",
        f"{plain}.info.jsonl",
        f"{plain}.data.jsonl.torn-5",
        "x.data.jsonl",
        ".data.jsonl",
        plain,
    ]
    for name in strangers:
        (store.logs / HASH / name).touch()
    (store.logs / "notes").mkdir()
    (store.logs / "C9NMV6V2TQT82").touch()
    found = {(hash, thread_id, path.name) for hash, thread_id, path in store.find_threads()}
    assert found == {
        (HASH, plain, f"{plain}.data.jsonl"),
        (HASH, archived, f"{archived}.data.jsonl.zst"),
        (OTHER, both, f"{both}.data.jsonl"),
    }
    assert len(list(store.find_threads())) == 3


def test_a_thread_is_named_by_id_start_or_latest(store: Store) -> None:
    """In any case; ``latest`` is the youngest by its own id, whatever bundle it runs."""
    old = add_thread(store, HASH, 1714963200000)
    young = add_thread(store, OTHER, 1814963200000)
    for text in (old, old.lower(), old[:8], old[:8].lower()):
        assert store.locate_thread(text) == (HASH, old, store.data_path(HASH, old))
    assert store.locate_thread("latest")[1] == young


def test_several_threads_with_one_start_are_listed(store: Store) -> None:
    """The person is shown what there is, at most ten of them, and asked for more."""
    ids = [add_thread(store, HASH, 1714963200000 + number) for number in range(12)]
    with pytest.raises(
        UsageError, match=r"'01hx' is the start of 12 thread ids: .* …; type more"
    ) as caught:
        store.locate_thread("01hx")
    assert [thread_id in str(caught.value) for thread_id in ids] == [True] * 10 + [False] * 2


@pytest.mark.parametrize("text", ["", "0" * 27])
def test_text_that_is_no_name_at_all_is_a_usage_error(store: Store, text: str) -> None:
    """The message shows the text, and nothing is looked up with it."""
    with pytest.raises(UsageError, match="is neither a thread id"):
        store.locate_thread(text)


@pytest.mark.parametrize("text", ["01", "u", "a-flow", "../x", "0\0", "\N{ROCKET}"])
def test_a_thread_that_is_not_there_is_not_found(store: Store, text: str) -> None:
    """Neither by a start, nor by a word that could start no id, nor as the latest of none."""
    with pytest.raises(
        NotFoundError, match=re.escape(f"no thread {text!r}; 'uncaged-workflow threads' lists them")
    ):
        store.locate_thread(text)
    with pytest.raises(NotFoundError, match="there is no thread yet"):
        store.locate_thread("latest")


def test_opening_reads_nothing(tmp_path: Path) -> None:
    """Opening is cheap: a store whose files cannot be read opens all the same."""
    store = Store.open(tmp_path)
    os.mkfifo(store.registry_path)  # reading it would block for ever
    assert Store.open(tmp_path) == store
