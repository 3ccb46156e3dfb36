"""Export and import of a thread as one file with its bundle and blobs. An import is verified by its
own hashes.

The export is a zstandard-compressed tar of exactly these regular files: ``bundle.py``,
``journal.data.jsonl``, ``blobs/<hash>``. Grants, worktrees and debug logs are left out.
"""

from __future__ import annotations

import io
import re
import shlex
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from uncaged_bundles.errors import (
    DamagedError,
    NotFoundError,
    RefusedError,
    UncagedError,
    UsageError,
)
from uncaged_bundles.ids import BundleHash, ThreadId, parse_bundle_hash, parse_thread_id
from uncaged_bundles.storage.files import held, read_if_there, write_atomically
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import MAX_SOURCE_BYTES, Bundle, read_bundle

from ..effect_kinds import KNOWN
from ..journal import durable
from ..journal.blobs import BlobDirectory, blob_hash
from ..journal.codec import CodecError, decode
from ..journal.foreign import MAX_BLOB_BYTES, check_journal
from ..journal.origin import ThreadOrigin, path_beside
from ..journal.recover import History, recover_strictly
from .removal import children_of
from .tarball import TarError, read_members

if TYPE_CHECKING:
    from ..api import Engine

BUNDLE = "bundle.py"
JOURNAL = "journal.data.jsonl"
BLOBS = "blobs/"
MAX_MEMBERS = 100_000
MAX_UNPACKED_BYTES = 1 << 30
_BLOB = re.compile(r"blobs/[0-9a-f]{32}")
_NAMED_BLOB = re.compile(rb'"blob":\{"field":"[^"]*","hash":"([0-9a-f]{32})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFiles:
    """Files of a thread. journal: its whole lines. blobs: those that it names, by hash."""

    thread_id: ThreadId
    bundle: Bundle
    journal: bytes
    history: History
    blobs: Mapping[str, bytes]


def read_files(engine: Engine, text: str) -> ThreadFiles:
    """Read the files of a thread that are needed to replay it.

    Raises:
        DamagedError: the journal is damaged before its end.
    """
    bundle, thread, path = engine.store.locate_thread(text)
    data = durable.read(path).data
    history = recover_strictly(data, bundle, thread)
    if history.corrupt:
        raise DamagedError(
            f"thread {thread} is corrupt; `fork {thread} --at {len(history.steps)}` makes a whole one of the steps before the damage"
        )
    data = data[: history.good_bytes]
    blobs = BlobDirectory(engine.store.blobs)
    names = sorted({match.decode() for match in _NAMED_BLOB.findall(data)})
    return ThreadFiles(
        thread_id=thread,
        bundle=engine.store.load_bundle(bundle, KNOWN),
        journal=data,
        history=history,
        blobs={name: blobs.get(name) for name in names},
    )


def export_thread(engine: Engine, text: str, target: Path) -> None:
    """Write a thread to *target*, atomically. Only the journal's whole lines are exported."""
    import zstandard

    files = read_files(engine, text)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _put(tar, BUNDLE, files.bundle.source)
        _put(tar, JOURNAL, files.journal)
        for name, data in files.blobs.items():
            _put(tar, f"{BLOBS}{name}", data)
    write_atomically(
        target, zstandard.ZstdCompressor(level=10, write_checksum=True).compress(buffer.getvalue())
    )


def read_export(source: Path) -> ThreadFiles:
    """Read an exported thread, of which nothing is believed before all of it is valid.

    Raises:
        NotFoundError, UsageError: the file is missing, or is no export.
        DamagedError: a hash, the chain or a field is wrong. BundleError: its bundle is not valid.
    """
    with _unpacked(source) as stream:
        members = dict(
            read_members(stream, _limit_of, max_members=MAX_MEMBERS, max_bytes=MAX_UNPACKED_BYTES)
        )
    if BUNDLE not in members or JOURNAL not in members:
        raise UsageError(f"{source} is no exported thread: it lacks {BUNDLE} or {JOURNAL}")
    bundle = read_bundle(members[BUNDLE], KNOWN)
    journal = members[JOURNAL]
    thread = _thread_of(journal, source)
    contents = {
        name.removeprefix(BLOBS): data for name, data in members.items() if name.startswith(BLOBS)
    }
    for name, data in contents.items():
        if blob_hash(data) != name:
            raise DamagedError(f"{source}: {BLOBS}{name} does not hold the bytes that were hashed")
    return ThreadFiles(
        thread_id=thread,
        bundle=bundle,
        journal=journal,
        history=_checked(journal, bundle.hash, thread, contents, source),
        blobs=contents,
    )


def import_thread(engine: Engine, source: Path, *, now_ms: int) -> ThreadId:
    """Store an exported thread: its bundle, its blobs, then its journal. Nothing is stored unless
    all of it is valid.

    Raises:
        RefusedError: the thread is in this store already. Others: as `read_export`.
    """
    files = read_export(source)
    if engine.has_thread(files.thread_id):
        raise RefusedError(
            f"thread {files.thread_id} is in this store already; `thread rm {files.thread_id}` removes it"
        )
    origin = ThreadOrigin(
        bytes=len(files.journal), steps=len(files.history.steps), importedMs=now_ms
    )
    engine.take_in(files, origin)
    return files.thread_id


def store_files(store: Store, files: ThreadFiles, origin: ThreadOrigin) -> None:
    """Store an imported thread in a directory.

    The file with its origin (`journal.origin`) is on disk before the journal, so that a crash never
    leaves an imported thread that looks like a local one. Blobs that a full disk left without their
    journal are removed by `prune`.

    Raises:
        RefusedError: another process has imported it just now.
        DamagedError: the store has another bundle with its hash.
    """
    bundle, thread = files.bundle, files.thread_id
    _refuse_other_bytes(store, bundle)
    store.put_bundle(bundle)
    blobs = BlobDirectory(store.blobs)
    for data in files.blobs.values():
        blobs.put(data)
    for child in children_of(store, files.history, blobs):
        if store.journal_of(child) is None:
            store.mark_removed(bundle.hash, child)
    path = store.data_path(bundle.hash, thread)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    # another import of the same thread may have been quicker, and its thread may run by now
    with held(path.parent, alone=True):
        if path.exists():
            raise RefusedError(f"thread {thread} was imported by another process just now")
        store.note_taken_up(bundle.hash, thread)
        origin.write(path)
        # crash here: an origin without a journal, which nothing reads
        try:
            write_atomically(path, files.journal)
        except UncagedError:
            path_beside(path).unlink(missing_ok=True)
            raise


def _checked(
    journal: bytes,
    bundle: BundleHash,
    thread: ThreadId,
    contents: Mapping[str, bytes],
    source: Path,
) -> History:
    """Return the history of a journal, after validation of each line's fields and of the chain."""
    try:
        check_journal(journal, bundle, thread, contents)
    except ValueError as exc:
        raise DamagedError(f"{source}: the journal does not hold at {exc}") from exc
    history = recover_strictly(journal, bundle, thread)
    if history.damage is not None:
        raise DamagedError(
            f"{source}: the journal does not hold at line {history.damage.line}: {history.damage.reason}"
        )
    return history


def _refuse_other_bytes(store: Store, bundle: Bundle) -> None:
    """Refuse a bundle whose hash another one in this store has; XXH64 does not rule that out."""
    stored = read_if_there(store.bundle_path(bundle.hash))
    if stored is not None and stored != bundle.source:
        raise DamagedError(
            f"bundle {bundle.hash} in this store holds other bytes than the archive's bundle of that hash"
        )


def _put(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o600
    tar.addfile(info, io.BytesIO(data))


def _limit_of(name: str) -> int:
    if name == BUNDLE:
        return MAX_SOURCE_BYTES
    if name == JOURNAL:
        return MAX_UNPACKED_BYTES
    if _BLOB.fullmatch(name):
        return MAX_BLOB_BYTES
    raise TarError(f"it holds {name[:100]!r}, which an exported thread does not")


@contextmanager
def _unpacked(source: Path) -> Iterator[IO[bytes]]:
    import zstandard

    try:
        with (
            source.open("rb") as packed,
            zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed) as stream,
        ):
            yield stream
    except FileNotFoundError as exc:
        raise NotFoundError(f"no file {str(source)!r}") from exc
    except (zstandard.ZstdError, TarError, EOFError) as exc:
        advice = f"a flow is taken in with: uncaged-workflow add NAME {shlex.quote(str(source))}"
        raise UsageError(f"{str(source)!r} is no exported thread ({exc}); {advice}") from exc
    except OSError as exc:
        raise UsageError(f"{str(source)!r} cannot be read: {exc.strerror or exc}") from exc


def _thread_of(journal: bytes, source: Path) -> ThreadId:
    try:
        start = decode(journal[: journal.find(b"\n")])
        if isinstance(start, dict):
            parse_bundle_hash(str(start["hash"]))
            return parse_thread_id(str(start["threadId"]))
    except (CodecError, KeyError) as exc:
        raise DamagedError(
            f"{source}: the journal does not begin with a start record: {exc}"
        ) from exc
    raise DamagedError(f"{source}: the journal does not begin with a start record")
