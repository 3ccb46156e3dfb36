"""Reader of the one kind of tar archive that `export` writes: plain ustar headers, regular files,
nothing else.

``tarfile`` reads a long name or a PAX record whole before its caller sees it, however large its
header says it is. Here every header that is not a regular file's is refused before a byte of its
content is read, and the bytes behind it are counted in the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO

BLOCK_BYTES = 512
CHUNK_BYTES = 1 << 20
_REGULAR = (b"0", b"\0")
_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a directory",
    b"6": "a FIFO",
    b"S": "a sparse file",
}


class TarError(Exception):
    """The stream is no such archive; the message says why."""


def read_members(
    stream: IO[bytes], limit_of: Callable[[str], int], *, max_members: int, max_bytes: int
) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each member.

    Args:
        limit_of: how many bytes a member with this name may have; raises TarError for a name that
            does not belong there.
    Raises:
        TarError: a member that is no regular file, too large, there twice, or cut off; or more than
            *max_members*, or *max_bytes* in all.
    """
    seen: set[str] = set()
    total = 0
    while True:
        header = _exactly(stream, BLOCK_BYTES)
        if not header.strip(b"\0"):
            return
        name, size = _parse(header)
        limit = limit_of(name)
        if name in seen:
            raise TarError(f"{name!r} is there twice")
        seen.add(name)
        total += size
        if size > limit:
            raise TarError(f"{name!r} has {size:,} bytes; at most {limit:,} are read")
        if len(seen) > max_members or total > max_bytes:
            raise TarError(f"more than {max_members:,} files or {max_bytes >> 20:,} MiB")
        content = _exactly(stream, size)
        _exactly(stream, -size % BLOCK_BYTES)
        yield name, content


def _parse(header: bytes) -> tuple[str, int]:
    """Return name and size of a regular file's header; TarError for every other kind."""
    kind = header[156:157]
    stated = header[148:156].strip(b" \0")
    if not _is_octal(stated) or int(stated, 8) != sum(header) - sum(header[148:156]) + 8 * 32:
        raise TarError("a header whose checksum does not hold")
    name = header[:100].partition(b"\0")[0].decode("utf-8", "replace")
    if kind not in _REGULAR:
        raise TarError(
            f"{name!r} is {_KINDS.get(kind, f'an entry of kind {kind!r}')}, and only regular files are read"
        )
    size = header[124:136].strip(b" \0")
    if not _is_octal(size) or header[345:500].strip(b"\0"):
        raise TarError(f"{name!r} has a size or a name in a form that is not read")
    return name, int(size, 8)


def _is_octal(text: bytes) -> bool:
    return bool(text) and all(digit in b"01234567" for digit in text)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    """Read *size* bytes in pieces, so that memory grows with what is there, not with what a header
    says.
    """
    content = bytearray()
    while len(content) < size:
        piece = stream.read(min(size - len(content), CHUNK_BYTES))
        if not piece:
            raise TarError("it is cut off")
        content += piece
    return bytes(content)
