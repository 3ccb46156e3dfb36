"""Archive of finished journals: zstandard frames beside the plain ones, read like them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError
from uncaged_bundles.storage.files import new_file, new_files, read_range

from . import lock

SUFFIX = ".zst"
MAX_BYTES = 1 << 30
LEVEL = 3
"""Level 10 takes three to five times as long for journals that are 0 to 10 % smaller."""
_FIRST_BYTES = 4096
"""As much of a journal as usually has its start record."""


def is_archived(path: Path) -> bool:
    return path.name.endswith(SUFFIX)


def plain_of(path: Path) -> Path:
    """Return the path of the journal when it is not packed."""
    return path.with_suffix("") if is_archived(path) else path


def beside(path: Path, suffix: str) -> Path:
    """Return the file of the same thread with this suffix; it stays there when the journal is
    packed.
    """
    plain = plain_of(path)
    return plain.with_name(plain.name.partition(".")[0] + suffix)


def contents(path: Path) -> bytes:
    """Return the journal's bytes, plain or packed: another process may have packed or unpacked it
    since it was looked up.

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
    """Return a packed journal's bytes.

    Raises:
        DamagedError: the file is not exactly one zstandard frame, or larger than 1 GiB unpacked.
    """
    return _unpacked(path.read_bytes(), path)


def first_line(path: Path) -> bytes:
    """Return a journal's first line, wherever the journal is by now; the rest is not read.

    Raises:
        NotFoundError, DamagedError: as `contents`.
    """
    plain = os.fspath(plain_of(path))
    for place in (plain, plain + SUFFIX, plain):
        with suppress(FileNotFoundError):
            line, end, _ = head(place, _FIRST_BYTES).partition(b"\n")
            if end:
                return line + end
            break
    line, end, _ = contents(path).partition(b"\n")
    return line + end


def head(path: str, size: int) -> bytes:
    """Return the first *size* bytes of a journal, plain or archived.

    Raises:
        OSError: it is not there. DamagedError: it is no archive.
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
        # the frame states its size, and the decompressor allocates that much before it checks
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
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        compress_all([(path, handle)])
    finally:
        os.close(handle)
    return path.with_name(path.name + SUFFIX)


def compress_all(journals: Sequence[tuple[Path, int]]) -> list[int]:
    """Replace several journals, each with its open descriptor; return how many bytes each saved.

    All are written before the first is flushed, so that they share one flush of the disk.
    """
    import zstandard

    packer = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    found: list[os.stat_result] = []
    saved: list[int] = []
    with new_files() as written:
        for path, handle in journals:
            found.append(os.fstat(handle))
            packed = packer.compress(read_range(handle, 0, found[-1].st_size))
            written.add(path.with_name(path.name + SUFFIX), packed)
            saved.append(found[-1].st_size - len(packed))
        written.publish()
    # crash here: both are there; the next `archive` removes the plain one
    for (path, _), stat in zip(journals, found, strict=True):
        _unlink_same(path, stat)
    return saved


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
    with lock.holding(path) as archived:
        if archived is None:
            raise busy
        found = os.fstat(archived)
        data = _unpacked(read_range(archived, 0, found.st_size), path)
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
