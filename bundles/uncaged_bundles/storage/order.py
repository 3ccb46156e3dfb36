"""Order log of a store: an append-only file with a line for each start of a thread, and one for
each time that a worker takes a thread up.

A start is ``ID``, the start of a thread by another thread is ``>ID``. A take-up is ``+HASH/ID``:
the holder of a journal's lock writes it before anything else, so a reader that knows the log up to
some place has to check only the threads after it. The order does not depend on a clock.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import StorageError
from ..ids import BundleHash, ThreadId, is_bundle_hash, is_thread_id
from ..records import dataclass
from .files import read_range

CHILD = ">"
TAKEN_UP = "+"
_TAIL_BYTES = 4096
_PRECEDING_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlace:
    """A place in the log up to which a reader knows it.

    preceding: the bytes before it. A log that was removed, cut or replaced has other bytes there.
    """

    offset: int
    preceding: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTail:
    """The log after a place. started: ids in order, with the places of their lines. taken_up: with
    their bundles, in the order of the last lines.
    """

    started: Mapping[ThreadId, int]
    taken_up: tuple[tuple[BundleHash, ThreadId], ...]
    place: OrderPlace


START = OrderPlace(offset=0, preceding=b"")


def append(path: Path, text: str) -> None:
    """Append a line. A line break goes before it, too, so that a torn line damages no other.

    Raises:
        StorageError: it cannot be written.
    """
    line = f"\n{text}\n".encode()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)
    except OSError as exc:
        raise StorageError(
            f"cannot write {path}: {exc.strerror or exc}; nothing was started"
        ) from exc


def read_since(path: Path, place: OrderPlace) -> OrderTail | None:
    """Return the log after *place*; None if it is another log."""
    data = _read(path, place.offset - len(place.preceding))
    if not data.startswith(place.preceding):
        return None
    end = data.rfind(b"\n") + 1
    if end <= len(place.preceding):
        return OrderTail(started={}, taken_up=(), place=place)
    started: dict[ThreadId, int] = {}
    taken_up: dict[tuple[BundleHash, ThreadId], None] = {}
    at = place.offset
    for line in data[len(place.preceding) : end].split(b"\n"):
        text, begin = line.decode("ascii", "replace"), at
        at += len(line) + 1
        if is_thread_id(thread := text.removeprefix(CHILD)):
            started[ThreadId(thread)] = begin
        elif text.startswith(TAKEN_UP):
            hash, _, thread = text[1:].partition("/")
            if is_bundle_hash(hash) and is_thread_id(thread):
                taken_up.pop((BundleHash(hash), ThreadId(thread)), None)
                taken_up[BundleHash(hash), ThreadId(thread)] = None
    offset = place.offset - len(place.preceding) + end
    return OrderTail(
        started=started,
        taken_up=tuple(taken_up),
        place=OrderPlace(offset=offset, preceding=data[max(0, end - _PRECEDING_BYTES) : end]),
    )


def last_started(path: Path) -> Iterator[ThreadId]:
    """Yield the threads that no other thread started, the latest first, without reading the whole
    log.
    """
    for text in reversed(_read(path, -_TAIL_BYTES).decode("ascii", "replace").split("\n")):
        if is_thread_id(text):
            yield ThreadId(text)


def start_order(path: Path) -> dict[str, int]:
    """Return the place of each thread in the order of starts. Threads that are not in it started
    before all others.
    """
    return {
        text.removeprefix(CHILD): place
        for place, text in enumerate(_lines(path))
        if text and text[0] != TAKEN_UP
    }


def children(path: Path) -> set[str]:
    """Return the ids of threads that other threads started."""
    return {text[1:] for text in _lines(path) if text[:1] == CHILD}


def _lines(path: Path) -> list[str]:
    return _read(path, 0).decode("ascii", "replace").split("\n")


def _read(path: Path, start: int) -> bytes:
    """Return the log's bytes from *start*, negative from its end; empty if the log is missing."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(handle).st_size
            return read_range(handle, start if start >= 0 else max(0, size + start), size)
        finally:
            os.close(handle)
    except FileNotFoundError:
        return b""
    except OSError as exc:
        raise StorageError(f"cannot read {path}: {exc.strerror or exc}") from exc
