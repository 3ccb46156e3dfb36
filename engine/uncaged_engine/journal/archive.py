"""A finished journal may be kept compressed; every reader reads it all the same."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError
from uncaged_bundles.storage.files import new_file, new_files

from . import lock

SUFFIX = ".zst"
MAX_BYTES = 1 << 30


def is_archived(path: Path) -> bool:
    return path.name.endswith(SUFFIX)


def plain_of(path: Path) -> Path:
    """Where the journal is written when it is not packed."""
    return path.with_suffix("") if is_archived(path) else path


def contents(path: Path) -> bytes:
    """The journal's bytes, wherever they are by now: it may have been packed or unpacked since it
    was looked up.

    Raises:
        NotFoundError: it was removed. DamagedError: as `read`.
    """
    plain = plain_of(path)
    packed = plain.with_name(plain.name + SUFFIX)
    for place in (plain, packed, plain):  # the new file is there before the old one goes
        with suppress(FileNotFoundError):
            return read(place) if place is packed else place.read_bytes()
    raise NotFoundError(
        f"{plain} was removed while it was looked at; `uncaged-workflow threads` lists what there is"
    )


def read(path: Path) -> bytes:
    """The journal's bytes. Raises: DamagedError: the file is not exactly one zstandard frame, or
    larger than 1 GiB unpacked.
    """
    return _unpacked(path.read_bytes(), path)


def head(path: str, size: int) -> bytes:
    """The first *size* bytes of a journal, plain or archived. Raises: OSError: it is not there.
    DamagedError: no archive.
    """
    with open(path, "rb", buffering=0) as journal:  # noqa: PTH123 - a listing asks for thousands, and a Path costs more than the read
        if not path.endswith(SUFFIX):
            return journal.read(size)
        import zstandard

        try:
            return bytes(zstandard.ZstdDecompressor().stream_reader(journal).read(size))
        except zstandard.ZstdError as exc:
            raise DamagedError(f"{path} cannot be unpacked: {exc}") from exc


def _unpacked(packed: bytes, path: Path) -> bytes:
    import zstandard

    try:
        # a size that the frame states is believed when it is unpacked
        if zstandard.frame_content_size(packed) > MAX_BYTES:
            raise DamagedError(
                f"{path} cannot be unpacked: it says that it holds more than {MAX_BYTES} bytes"
            )
        return zstandard.ZstdDecompressor().decompress(
            packed, max_output_size=MAX_BYTES, allow_extra_data=False
        )
    except zstandard.ZstdError as exc:
        raise DamagedError(f"{path} cannot be unpacked: {exc}") from exc


def compress(path: Path) -> Path:
    """Replace a journal by its compressed form; the caller holds its lock, so that no process
    writes what would be lost.

    The compressed file is durable before the plain one goes, so a crash between leaves both, and
    readers take the plain one.
    """
    [target] = compress_all([path])
    return target


def compress_all(paths: Sequence[Path]) -> list[Path]:
    """Do the same for several: all are written before the first is flushed, so that most of them
    share a flush of the disk.
    """
    import zstandard

    packer = zstandard.ZstdCompressor(level=10, write_checksum=True)
    targets = [path.with_name(path.name + SUFFIX) for path in paths]
    found: list[os.stat_result] = []
    with new_files() as written:
        for path, target in zip(paths, targets, strict=True):
            with path.open("rb") as journal:
                found.append(os.fstat(journal.fileno()))
                written.add(target, packer.compress(journal.read()))
        written.publish()
    # crash here: both are there; the next `archive` removes the plain one
    for path, stat in zip(paths, found, strict=True):
        _unlink_same(path, stat)
    return targets


def restore(path: Path) -> Path:
    """Replace the archive at *path* by the plain journal, so that a worker can write to it.

    The lock of the archive is held all along, and the plain file is locked before it gets its name:
    no other process writes to either of them until only the plain one is left.

    Raises:
        RefusedError: another process restores, removes or drives the thread, or did so since *path*
            was looked up.
    """
    target = plain_of(path)
    busy = RefusedError(
        f"{target.name} was taken out of the archive or removed by another process just now; look at it again"
    )
    with lock.taken(path) as ours:
        if not ours:
            raise busy
        with path.open("rb") as archived:
            found = os.fstat(archived.fileno())
            data = _unpacked(archived.read(), path)
        with new_file(target, data) as new:
            # crash here: only the archive has the journal's name, a temporary file has its bytes
            if not lock.take(new.handle) or target.exists():
                raise busy
            new.publish()
            # crash here: both are there, and readers take the plain one
            _unlink_same(path, found)
            return target  # plain, and locked until this block ends


def _unlink_same(path: Path, found: os.stat_result) -> None:
    """Unlink *path* if it is still the file that was read."""
    with suppress(FileNotFoundError):
        now = path.stat()
        if (now.st_dev, now.st_ino, now.st_size) == (found.st_dev, found.st_ino, found.st_size):
            path.unlink()
