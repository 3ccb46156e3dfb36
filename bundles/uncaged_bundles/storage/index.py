"""Index of ``workflow.yaml``: its entries by name with the places of their lines, in
``workflow.index`` beside it.

Rule 1: the index has only facts that the text has, too; it may be deleted at any time, and is
rebuilt when it does not match the text.
Rule 2: it matches a text of the same inode, size and times of change. If the text was changed less
than `RACY_NS` before it was read, another edit may have left all of these unchanged, so the text's
digest is compared as well.
Rule 3: a row is valid only with its seal, a digest over the row and over the lines of the text that
it was read from; so is the head.
Rule 4: the absence of a name, and a list of names, are valid only after the digest of all rows was
compared.

Not SQLite: that is one more library at every start (2 ms), side files that a read-only store cannot
have, and locks of its own. This file is replaced as a whole under the registry's lock, and a lookup
reads a few blocks of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from _blake2 import blake2b
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import StorageError
from ..records import dataclass
from .files import new_file, read_range

FORMAT = 3
RACY_NS = 2_000_000_000
"""More than any file system's clock is behind ours, or coarser: two seconds, as FAT has it."""
_BLOCK_BYTES = 1024
_DIGEST_BYTES = 16
MOST_FORMER, MOST_NAMES = 8, 64
"""Former texts that the head knows, and flows that each of these changes names."""

Stamp = tuple[int, int, int, int]
Read = Callable[[int, int], bytes]


class IndexMismatch(Exception):
    """The index does not match the text, or was damaged."""


@dataclass(slots=True)  # not frozen: ten thousand are made for a list
class IndexRow:
    """One entry. start, end: the bytes of its lines in the text. value: JSON of the entry. seal:
    see rule 3.
    """

    section: str
    key: str
    start: int
    end: int
    value: str
    seal: str

    @classmethod
    def sealed(
        cls, section: str, key: str, span: tuple[int, int], value: str, lines: bytes
    ) -> IndexRow:
        """Return the row of an entry with these *lines*, at *span*."""
        return cls(section, key, *span, value, _seal(section, key, value, lines))

    def moved(self, by: int) -> IndexRow:
        """Return the row of the same lines at another place."""
        return IndexRow(
            self.section, self.key, self.start + by, self.end + by, self.value, self.seal
        )

    def encode(self) -> bytes:
        return f"{self.section}/{self.key}\t{self.start}\t{self.end}\t{self.seal}\t{self.value}\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHead:
    """Facts about the text as a whole.

    stamp: see rule 2. text, rows: digests. regular: all entries can be read, and each has lines of
    its own. top: the bytes of other top-level keys with their values. unreadable: sentences by
    name. removed: None if the list cannot be read. former: digests of former texts, oldest first,
    with the names of the flows whose entries the next text has changed.
    """

    stamp: Stamp
    text: str
    rows: str
    regular: bool
    top: Mapping[str, tuple[int, int]]
    problems: tuple[str, ...]
    unreadable: Mapping[str, str]
    removed: tuple[str, ...] | None
    seeded: tuple[str, ...]
    former: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def decode(cls, line: bytes) -> IndexHead:
        """Read the first line of an index.

        Raises:
            IndexMismatch: it was damaged, or has another format.
        """
        seal, _, encoded = line.removesuffix(b"\n").partition(b" ")
        if seal != digest(encoded).encode():
            raise IndexMismatch
        try:
            fields: dict[str, Any] = json.loads(encoded)
            if fields.pop("format") != FORMAT:
                raise IndexMismatch
            for name in ("stamp", "problems", "removed", "seeded"):
                fields[name] = None if fields[name] is None else tuple(fields[name])
            former = tuple((text, tuple(names)) for text, names in fields.pop("former"))
            return cls(**fields, former=former)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as exc:
            raise IndexMismatch from exc

    def names_since(self, text: object) -> tuple[str, ...] | None:
        """Return the flows whose entries may have changed since a former text; None if that is not
        known.
        """
        names: dict[str, None] = {}
        for former, changed in reversed(self.former):
            names.update(dict.fromkeys(changed))
            if former == text:
                return tuple(names)
        return None

    def encode(self) -> bytes:
        fields = {name: getattr(self, name) for name in self.__slots__}
        encoded = json.dumps({"format": FORMAT, **fields}).encode()
        return digest(encoded).encode() + b" " + encoded + b"\n"


class Index:
    """The rows for one state of the text. rows, text: read bytes of each; offset: of the
    first row.
    """

    def __init__(self, head: IndexHead, rows: Read, offset: int, end: int, text: Read) -> None:
        self.head = head
        self._rows = rows
        self._offset = offset
        self._end = end
        self._text = text

    @classmethod
    def of(cls, head: IndexHead, rows: bytes, text: bytes) -> Index:
        """Return an index in memory."""
        return cls(
            head,
            lambda start, end: rows[start:end],
            0,
            len(rows),
            lambda start, end: text[start:end],
        )

    def get(self, section: str, key: str) -> IndexRow | None:
        """Return the row of one entry.

        Raises:
            IndexMismatch: see rules 3 and 4.
        """
        target = f"{section}/{key}".encode("utf-8", "surrogatepass")
        place = self._place_of(target)
        row = (
            row_of(self._line_at(place).decode("utf-8", "replace").rstrip("\n"))
            if place < self._end
            else None
        )
        if row is None or (row.section, row.key) != (section, key):
            self._whole()
            return None
        if row.seal != _seal(section, key, row.value, self._text(row.start, row.end)):
            raise IndexMismatch
        return row

    def lines_of(self, row: IndexRow) -> bytes:
        """Return the lines of the text that a row was read from; the whole text for an entry
        without lines of its own.
        """
        return (
            self._text(row.start, row.end)
            if row.start < row.end
            else self._text(0, self.head.stamp[1] or sys.maxsize)
        )

    def rows(self, section: str, prefix: str = "") -> list[IndexRow]:
        """Return the rows of a section whose keys begin with *prefix*, in order of the keys.

        Raises:
            IndexMismatch: see rule 4.
        """
        data = self._whole()
        target = f"{section}/{prefix}".encode("utf-8", "surrogatepass")
        start, end = (self._place_of(name) - self._offset for name in (target, target + b"\x7f"))
        return [row_of(line) for line in data[start:end].decode().split("\n")[:-1]]

    def changed(self, section: str, known: Collection[str]) -> tuple[list[str], list[IndexRow]]:
        """Return the seals of all rows of a section, and the rows whose seal is not known. The seal
        identifies an entry's content, wherever it is in the text.

        Raises:
            IndexMismatch: see rule 4.
        """
        data = self._whole()
        start, end = (
            self._place_of(f"{section}/{last}".encode()) - self._offset for last in ("", "\x7f")
        )
        lines = data[start:end].decode()
        # a tab each before start, end, seal and value
        seals = lines.split("\t")[3::4]
        new = set(seals).difference(known)
        pairs = zip(seals, lines.split("\n"), strict=False) if new else ()
        return seals, [row_of(line) for seal, line in pairs if seal in new]

    def _whole(self) -> bytes:
        data = self._rows(self._offset, self._end)
        if digest(data) != self.head.rows:
            raise IndexMismatch
        return data

    def _place_of(self, target: bytes) -> int:
        """Return the place of the first row whose name is not before *target*; by bisecting the
        bytes, since rows differ in length.
        """
        low, high = self._offset, self._end
        while low < high:
            middle = (low + high) // 2
            start = low if middle == low else self._after_line(middle - 1)
            if start >= high:
                high = middle
                continue
            line = self._line_at(start)
            if line.partition(b"\t")[0] < target:
                low = start + len(line)
            else:
                high = start
        return low

    def _after_line(self, place: int) -> int:
        return place + len(self._line_at(place))

    def _line_at(self, place: int) -> bytes:
        line = b""
        while block := self._rows(
            place + len(line), min(self._end, place + len(line) + _BLOCK_BYTES)
        ):
            head, found, _ = block.partition(b"\n")
            line += head + found
            if found:
                return line
        raise IndexMismatch


@contextmanager
def opened(path: Path, text_path: Path) -> Iterator[Index]:
    """Open the index at *path* for the current text.

    Raises:
        IndexMismatch: it does not match, or there is none.
        OSError: the text cannot be read.
    """
    text = os.open(text_path, os.O_RDONLY | os.O_CLOEXEC)
    handle = -1
    try:
        try:
            # a pipe in its place must not hold us up
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            taken_ns, size = _taken(handle)
            line = _first_line(handle, size)
        except OSError as exc:
            raise IndexMismatch from exc
        head = IndexHead.decode(line)
        found = os.fstat(text)
        if head.stamp != stamp_of(found) or (
            taken_ns - found.st_mtime_ns < RACY_NS and not _settled(handle, head, text)
        ):
            raise IndexMismatch
        yield Index(head, _reader(handle), len(line), size, _reader(text))
    finally:
        for opened_handle in (text, handle):
            if opened_handle >= 0:
                os.close(opened_handle)


def write_index(path: Path, head: IndexHead, rows: bytes, *, taken_ns: int) -> None:
    """Replace the index; in a store that cannot be written there is none.

    Args:
        taken_ns: a time before the text was read, or its last change.
    """
    with (
        suppress(OSError, StorageError),
        new_file(path, head.encode() + rows, durable=False) as new,
    ):
        os.utime(new.handle, ns=(taken_ns, taken_ns))
        new.publish()


def stamp_of(found: os.stat_result) -> Stamp:
    """Return the identity of a file's state: inode, size and times."""
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def encode_rows(rows: Iterable[IndexRow]) -> bytes:
    """Return the rows as bytes, sorted by name."""
    return b"".join(
        line
        for _, line in sorted((f"{row.section}/{row.key}".encode(), row.encode()) for row in rows)
    )


def digest(data: bytes) -> str:
    """Return the digest of a text or of rows."""
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def _seal(section: str, key: str, value: str, lines: bytes) -> str:
    return digest(b"\0".join((section.encode(), key.encode(), value.encode(), lines)))


def row_of(line: str) -> IndexRow:
    """Return the row of a line.

    Raises:
        IndexMismatch: the line was damaged.
    """
    try:
        name, start, end, seal, value = line.split("\t")
        section, _, key = name.partition("/")
        return IndexRow(section, key, int(start), int(end), value, seal)
    except ValueError as exc:
        raise IndexMismatch from exc


def _taken(handle: int) -> tuple[int, int]:
    """Return the time at which the text last matched, and the size of the index."""
    found = os.fstat(handle)
    return found.st_mtime_ns, found.st_size


def _first_line(handle: int, size: int) -> bytes:
    line = b""
    while len(line) < size and not line.endswith(b"\n"):
        block = read_range(handle, len(line), min(size, len(line) + _BLOCK_BYTES))
        head, found, _ = block.partition(b"\n")
        line += head + found
        if not block:
            break
    return line


def _settled(handle: int, head: IndexHead, text: int) -> bool:
    """Compare the text's digest, and store the time before it was read as the index's own time of
    change.
    """
    now_ns = time.time_ns()
    if digest(read_range(text, 0, head.stamp[1])) != head.text:
        return False
    with suppress(OSError):  # a read-only store: the next reader compares again
        os.utime(handle, ns=(now_ns, now_ns))
    return True


def _reader(handle: int) -> Read:
    return lambda start, end: read_range(handle, start, end)
