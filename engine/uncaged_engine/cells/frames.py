"""Framing of requests to a bundle's process: one line each, several lines in one write."""

from __future__ import annotations

from collections.abc import Iterable

CHUNK_BYTES = 1 << 16


def frame_of(letter: str, slot: int, seq: int, body: bytes) -> bytes:
    """Build the line of a request.

    Raises:
        ValueError: the body has a line feed before its end.
    """
    frame = b"%b %d %d %b" % (letter.encode(), slot, seq, body)
    if not frame.endswith(b"\n"):
        frame += b"\n"
    # the child reads lines: a second one would be answered as a request of its own
    if frame.find(b"\n") != len(frame) - 1:
        raise ValueError(f"a frame's body holds a line feed: {body[:80]!r}")
    return frame


def batches(first: bytes, frames: Iterable[bytes]) -> Iterable[bytes]:
    """Join frames into writes of a chunk each: a replay costs no system call per step."""
    pending, size = [first], len(first)
    for frame in frames:
        pending.append(frame)
        size += len(frame)
        if size >= CHUNK_BYTES:
            yield b"".join(pending)
            pending, size = [], 0
    if pending:
        yield b"".join(pending)
