"""Atomic, durable file writes, range reads and advisory locks."""

from __future__ import annotations

import fcntl
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import RefusedError, StorageError
from ..records import dataclass

_TEMPORARY_SUFFIX = ".tmp"
_LOCK_POLL_S = 0.03
_PART_BYTES = 1 << 24
_ONE_BY_ONE = 8
"""As many files are flushed one by one: a flush of the file system waits for the data of all its
other writers, too.
"""
_SYNCFS_REPORTS = (5, 8)
"""The Linux release since which `syncfs` reports that a write failed."""
_SYNCFS_TYPES = frozenset((0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x01021994))
"""File systems where it does: ext, xfs, btrfs, f2fs, tmpfs. An overlay's does not report a failed
write to the file system below, and FUSE's need not reach the server.
"""
_STATFS_BYTES = 256


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> os.stat_result:
    """Replace *path* by *data*: temporary file beside it, fsync, rename, fsync of the directory. No
    temporary file is left.

    Args:
        durable: as for `new_file`.
    Returns:
        The state of the new file.
    """
    with new_file(path, data, durable=durable) as new:
        return new.publish()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A complete, durable file that is not yet renamed to its path. handle: its open descriptor."""

    path: Path
    handle: int
    temporary: Path
    durable: bool

    def publish(self) -> os.stat_result:
        """Rename it to its path, durably; an existing file is replaced. Return its state after
        that.
        """
        try:
            self.temporary.replace(self.path)
            if self.durable:
                sync_directory(self.path.parent)
            return os.fstat(self.handle)
        except OSError as exc:
            raise _cannot_write(self.path, exc) from exc


@contextmanager
def new_file(path: Path, data: bytes, *, durable: bool = True) -> Iterator[NewFile]:
    """Write *data* to a temporary file beside *path* and keep it open. If the block fails before
    `publish`, the file is removed.

    Args:
        durable: flush file and name to disk; not needed for a file that can be made again.
    """
    temporary = _temporary_of(path)
    handle = -1
    try:
        try:
            handle = _written(temporary, data, durable=durable)
        except OSError as exc:
            raise _cannot_write(path, exc) from exc
        yield NewFile(path=path, handle=handle, temporary=temporary, durable=durable)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    finally:
        if handle >= 0:
            os.close(handle)


class NewFiles:
    """Files that are renamed to their paths together, once all of them are durable."""

    def __init__(self) -> None:
        self._files: list[NewFile] = []
        self._named = 0  # so many of them have their names

    def add(self, path: Path, data: bytes) -> None:
        """Write *data* to a temporary file beside *path*."""
        temporary = _temporary_of(path)
        try:
            self._files.append(
                NewFile(
                    path=path,
                    handle=_written(temporary, data, durable=False),
                    temporary=temporary,
                    durable=False,
                )
            )
        except OSError as exc:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise _cannot_write(path, exc) from exc

    def publish(self) -> None:
        """Flush all files, rename each to its path, and flush their directories; existing files are
        replaced.
        """
        _flush(self._files)
        for file in self._files:
            file.publish()
            self._named += 1
        for directory in {file.path.parent for file in self._files}:
            sync_directory(directory)

    def close(self) -> None:
        """Remove the files that were not published."""
        for file in self._files:
            os.close(file.handle)
        for file in self._files[self._named :]:
            with suppress(OSError):
                file.temporary.unlink(missing_ok=True)


@contextmanager
def new_files() -> Iterator[NewFiles]:
    """Write several files that become durable together. If the block fails before `publish`, they
    are removed.
    """
    files = NewFiles()
    try:
        yield files
    finally:
        files.close()


def read_if_there(path: Path) -> bytes | None:
    """Return the file's bytes; None if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise StorageError(f"cannot read {path}: {exc.strerror or exc}") from exc


def read_range(handle: int, start: int, end: int) -> bytes:
    """Return the bytes of an open file from *start* up to *end*, or up to its end if that is
    earlier.
    """
    parts: list[bytes] = []
    while start < end and (part := os.pread(handle, min(end - start, _PART_BYTES), start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def sync_directory(directory: Path) -> None:
    """Flush the names in *directory* to disk."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def held(directory: Path, *, alone: bool) -> Iterator[int]:
    """Hold an advisory lock on a directory, shared or exclusive (*alone*), and yield its handle."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield handle
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, *, timeout_s: float) -> Iterator[None]:
    """Hold the lock file *path* alone; the file is made if it is missing, and stays.

    Raises:
        TimeoutError: another process, or another thread of this one, holds it for longer than
            *timeout_s*.
        OSError: the file cannot be made or opened.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"{path} is held by another process") from None
                time.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(handle)


@contextmanager
def changing(path: Path, *, timeout_s: float) -> Iterator[None]:
    """Hold the lock of a file that several processes change: ``PATH.lock`` beside it.

    Raises:
        RefusedError: another process holds it for longer than *timeout_s*.
    """
    try:
        with locked(path.with_name(f"{path.name}.lock"), timeout_s=timeout_s):
            yield
    except TimeoutError as exc:
        raise RefusedError(
            f"{path} is being changed by another process for more than {timeout_s:.0f} s; try again"
        ) from exc


def remove_stale_temporaries(directory: Path, before_s: float) -> None:
    """Remove temporary files of killed writers that are older than *before_s* (seconds since
    1970).
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(_TEMPORARY_SUFFIX):
                with suppress(FileNotFoundError):  # its writer, or another cleaner, was quicker
                    if entry.stat(follow_symlinks=False).st_mtime < before_s:
                        Path(entry.path).unlink()


def _temporary_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.urandom(6).hex()}{_TEMPORARY_SUFFIX}")


def _written(path: Path, data: bytes, *, durable: bool) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        if durable:
            os.fsync(handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _flush(files: Sequence[NewFile]) -> None:
    """Flush files to disk, in the order in which they were opened; many of one file system with one
    call.
    """
    if len(files) > _ONE_BY_ONE and _syncfs_reports():
        _flush_together(files)
        return
    for file in files:
        _flush_one(file)


def _flush_one(file: NewFile) -> None:
    try:
        os.fsync(file.handle)
    except OSError as exc:
        raise _cannot_write(file.path, exc) from exc


def _flush_together(files: Sequence[NewFile]) -> None:
    import ctypes  # 5 ms, for housekeeping alone

    library = ctypes.CDLL(None, use_errno=True)
    found = ctypes.create_string_buffer(_STATFS_BYTES)
    flushed: set[int] = set()
    for file in files:
        device = os.fstat(file.handle).st_dev
        if device in flushed:
            continue
        # its first field is the type of the file system
        if (
            library.fstatfs(file.handle, found)
            or ctypes.c_long.from_buffer(found).value not in _SYNCFS_TYPES
        ):
            _flush_one(file)
            continue
        # the first of each file system: errors are reported to a file that was open before them
        if library.syncfs(file.handle):
            code = ctypes.get_errno()
            raise _cannot_write(file.path.parent, OSError(code, os.strerror(code)))
        flushed.add(device)


def _syncfs_reports() -> bool:
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (
        sys.platform == "linux"
        and release is not None
        and (int(release[1]), int(release[2])) >= _SYNCFS_REPORTS
    )


def _cannot_write(path: Path, exc: OSError) -> StorageError:
    return StorageError(f"cannot write {path}: {exc.strerror or exc}; correct that and try again")
