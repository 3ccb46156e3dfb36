"""A thread travels as one file with its bundle and blobs; what arrives is believed only as far as its own hashes prove it.

The parcel is a zstandard-compressed tar of exactly these regular files: ``bundle.py``, ``journal.data.jsonl``, ``blobs/<hash>``. Grants,
worktrees and debug logs do not travel.
"""

from __future__ import annotations

import io
import re
import shlex
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError, UsageError
from uncaged_bundles.ids import ThreadId, bundle_hash, parse_bundle_hash, parse_thread_id
from uncaged_bundles.storage.files import held, write_atomically
from uncaged_bundles.validation.validate import read_bundle

from ..journal import durable
from ..journal.blobs import Blobs, blob_hash
from ..journal.codec import CodecError, decode
from ..journal.recover import recover_strictly
from ..known_effects import KNOWN
from .removal import mark_children

if TYPE_CHECKING:
    from ..api import Engine

BUNDLE = "bundle.py"
JOURNAL = "journal.data.jsonl"
MAX_MEMBERS = 100_000
MAX_UNPACKED_BYTES = 1 << 30
_BLOB = re.compile(r"blobs/[0-9a-f]{32}")
_NAMED_BLOB = re.compile(rb'"blob":\{"field":"[^"]*","hash":"([0-9a-f]{32})"')


def export_thread(engine: Engine, text: str, target: Path) -> None:
    """Write a thread to *target*: whole or not at all. Only the journal's whole lines travel."""
    import zstandard

    bundle, thread, path = engine.store.locate_thread(text)
    data = durable.read(path).data
    history = recover_strictly(data, bundle, thread)
    if history.corrupt:
        raise DamagedError(
            f"thread {thread} is corrupt; `fork {thread} --at {len(history.steps)}` makes a whole one of the steps before the damage"
        )
    data = data[: history.good_bytes]
    blobs = Blobs(engine.store.blobs)
    names = sorted({match.decode() for match in _NAMED_BLOB.findall(data)})
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _put(tar, BUNDLE, engine.store.load_bundle(bundle, KNOWN).source)
        _put(tar, JOURNAL, data)
        for name in names:
            _put(tar, f"blobs/{name}", blobs.get(name))
    write_atomically(target, zstandard.ZstdCompressor(level=10, write_checksum=True).compress(buffer.getvalue()))


def import_thread(engine: Engine, source: Path) -> ThreadId:
    """Take in a thread: its bundle, its blobs, then its journal. Nothing is stored unless everything proves itself.

    Raises:
        NotFoundError, UsageError: it is missing, or no parcel.
        DamagedError: a hash or the chain does not hold. RefusedError: the thread is here already.
        BundleError: its bundle is not valid.
    """
    members = dict(_members(source))
    if BUNDLE not in members or JOURNAL not in members:
        raise UsageError(f"{source} is no exported thread: it lacks {BUNDLE} or {JOURNAL}")
    bundle = read_bundle(members[BUNDLE], KNOWN)
    thread = _thread_of(members[JOURNAL], source)
    if any(found == thread for _, found, _ in engine.store.find_threads()):
        raise RefusedError(f"thread {thread} is in this store already; `thread rm {thread}` removes it")
    history = recover_strictly(members[JOURNAL], bundle_hash(members[BUNDLE]), thread)
    if history.damage is not None:
        raise DamagedError(f"{source}: the journal does not hold at line {history.damage.line}: {history.damage.reason}")
    for name, data in members.items():
        if name.startswith("blobs/") and f"blobs/{blob_hash(data)}" != name:
            raise DamagedError(f"{source}: {name} does not hold the bytes that were hashed")
    lacking = {match.decode() for match in _NAMED_BLOB.findall(members[JOURNAL])} - {name[6:] for name in members}
    if lacking:
        raise DamagedError(f"{source}: the journal names blobs that are not in it: {', '.join(sorted(lacking))}")
    engine.store.put_bundle(bundle)
    blobs = Blobs(engine.store.blobs)
    for name, data in members.items():
        if name.startswith("blobs/"):
            blobs.put(data)
    mark_children(engine.store, history, blobs)
    path = engine.store.data_path(bundle.hash, thread)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with held(path.parent, alone=True):  # another import of the same thread may have been quicker, and its thread may run by now
        if path.exists():
            raise RefusedError(f"thread {thread} was imported by another process just now")
        write_atomically(path, members[JOURNAL])
    return thread


def _put(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o600
    tar.addfile(info, io.BytesIO(data))


def _members(source: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a parcel; names, kinds and sizes are checked before anything is kept."""
    seen: set[str] = set()
    total = 0
    with _unpacked(source) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for info in tar:
            if not info.isreg() or (info.name not in (BUNDLE, JOURNAL) and not _BLOB.fullmatch(info.name)) or info.name in seen:
                raise UsageError(f"{source} holds {info.name[:100]!r}, which an exported thread does not")
            seen.add(info.name)
            total += info.size
            if len(seen) > MAX_MEMBERS or total > MAX_UNPACKED_BYTES:
                raise UsageError(f"{source} holds more than {MAX_MEMBERS} files or {MAX_UNPACKED_BYTES >> 20} MiB")
            content = tar.extractfile(info)
            yield info.name, content.read() if content is not None else b""


@contextmanager
def _unpacked(source: Path) -> Iterator[IO[bytes]]:
    import zstandard

    try:
        with source.open("rb") as packed, zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed) as stream:
            yield stream
    except FileNotFoundError as exc:
        raise NotFoundError(f"no file {str(source)!r}") from exc
    except (zstandard.ZstdError, tarfile.TarError, EOFError) as exc:
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
        raise DamagedError(f"{source}: the journal does not begin with a start record: {exc}") from exc
    raise DamagedError(f"{source}: the journal does not begin with a start record")
