"""Embedding model in tests: vectors by the topics that a text names, as answers of a server."""

from __future__ import annotations

from collections.abc import Sequence

from .modelserver import Seen, Turn

TOPICS = (("rain", "forecast", "umbrella", "wet"), ("lamp", "dark", "bright"))


def vector(text: str) -> list[float]:
    """One number for each topic, and one that all texts share."""
    words = text.lower()
    return [*(float(any(word in words for word in topic)) for topic in TOPICS), 0.5]


def embedded(seen: Seen) -> Turn:
    """The answer of an embeddings endpoint, its items in another order than the texts."""
    texts: Sequence[str] = seen.body["input"]
    data = [{"index": n, "embedding": vector(text)} for n, text in enumerate(texts)]
    return Turn(body={"data": data[::-1], "usage": {"prompt_tokens": 7 * len(texts)}})
