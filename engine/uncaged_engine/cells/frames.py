"""Requests to a bundle's process are single lines, many of which may go out in one write; so are its answers."""

from __future__ import annotations

from collections.abc import Iterable

CHUNK_BYTES = 1 << 16


def frame_of(letter: str, slot: int, seq: int, body: bytes) -> bytes:
    frame = b"%b %d %d %b" % (letter.encode(), slot, seq, body)
    if not frame.endswith(b"\n"):
        frame += b"\n"
    if frame.find(b"\n") != len(frame) - 1:
        raise ValueError(f"a frame's body holds a line feed: {body[:80]!r}")
    return frame


def joined(first: bytes, frames: Iterable[bytes]) -> Iterable[bytes]:
    """Join frames, so that many go out in one write."""
    pending, size = [first], len(first)
    for frame in frames:
        pending.append(frame)
        size += len(frame)
        if size >= CHUNK_BYTES:
            yield b"".join(pending)
            pending, size = [], 0
    if pending:
        yield b"".join(pending)
