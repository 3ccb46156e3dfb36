"""Reply of a bundle's process: a word and its JSON, and the sentence that shows where it differs
from the journal.
"""

from __future__ import annotations

from uncaged_bundles.records import dataclass, field


@dataclass(slots=True)
class BundleReply:
    """What the bundle answers to a request.

    word: effect, return or raise while it runs; body: its JSON. seq: of the effect in *body*, or
    the place at which the run ended.
    digest: over a replay's effects, else ``-``. Replies are equal if their words and bodies are.
    """

    word: str
    body: bytes
    seq: int = field(default=0, compare=False)
    digest: str = field(default="-", compare=False)


def mismatch(seq: int, recorded: bytes, yielded: bytes) -> str:
    """Return the sentence that shows both sides of a difference."""
    return (
        f"step {seq}: the journal holds {shown(recorded)}, the bundle now yields {shown(yielded)}"
    )


def shown(raw: bytes) -> str:
    """Return effect or error as text of a bounded length: the bundle chose it, and it may be
    megabytes long.
    """
    text = raw.decode("utf-8", "replace")
    return text if len(text) <= 300 else f"{text[:300]}… ({len(raw)} bytes)"
