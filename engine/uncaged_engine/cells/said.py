"""What a bundle said is a word and its JSON, and where it should have said something else, both sides are shown."""

from __future__ import annotations

from uncaged_bundles.records import dataclass


@dataclass(slots=True)
class Said:
    """What the bundle said last. word: effect, return or raise; body: its JSON."""

    word: str
    body: bytes


def mismatch(seq: int, recorded: bytes, yielded: bytes) -> str:
    """The sentence that shows both sides of a difference."""
    return f"step {seq}: the journal holds {shown(recorded)}, the bundle now yields {shown(yielded)}"


def shown(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return text if len(text) <= 300 else f"{text[:300]}… ({len(raw)} bytes)"
