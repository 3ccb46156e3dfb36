"""Similarity of flows to a sentence by an embedding model, with vectors kept in the catalogue's
database by the digest of the text and the model.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import mul
from typing import Protocol, TypeAlias

from uncaged_bundles.records import dataclass

TABLE = "create table vectors(model text, text text, vector blob, primary key(model, text))"
SETTLING_RANK = 60
"""Constant of the reciprocal rank fusion, as its authors have it: the higher, the less the first
places count.
"""
MOST_SIMILAR = 50
"""Flows that similarity alone may bring in."""
MAX_TEXT_CHARACTERS = 2_000
BATCH = 64

Vector: TypeAlias = "array[float]"
Opened = Callable[[], AbstractContextManager[sqlite3.Connection]]


class Embedder(Protocol):
    """Client of an embedding model; its id is another one for other vectors."""

    @property
    def id(self) -> str: ...

    def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Return vectors of length 1 for at most `BATCH` texts.

        Raises:
            EmbeddingsFailed.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOfFlow:
    """Text of a flow that has a vector. digest: of the text; read: returns the text."""

    flow: str
    digest: str
    read: Callable[[], str]


def similarities(
    opened: Opened, embedder: Embedder, sentence: str, texts: Iterable[TextOfFlow]
) -> dict[str, float]:
    """Return the cosine of each flow's text and the sentence. Vectors that are new are kept, and
    those of texts that no flow has any more are dropped.

    The database is not held open during requests.
    """
    [wanted] = embedder.vectors([sentence[:MAX_TEXT_CHARACTERS]])
    flows = list(texts)
    with opened() as connection:
        known = _known(connection, embedder.id, len(wanted))
    missing = list({text.digest: text for text in flows if text.digest not in known}.values())
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        found = embedder.vectors([text.read()[:MAX_TEXT_CHARACTERS] for text in batch])
        vectors = {text.digest: vector for text, vector in zip(batch, found, strict=True)}
        with opened() as connection:
            _keep(connection, embedder.id, vectors)
        known.update(vectors)
    return {
        text.flow: sum(map(mul, wanted, known[text.digest]))
        for text in flows
        if len(known[text.digest]) == len(wanted)
    }


def fused(by_words: Sequence[str], by_meaning: Mapping[str, float]) -> list[str]:
    """Return flows by the sum of their reciprocal ranks in both orders, best first."""
    similar = sorted(by_meaning, key=lambda flow: (-by_meaning[flow], flow))[:MOST_SIMILAR]
    scores: dict[str, float] = {}
    for order in (by_words, similar):
        for rank, flow in enumerate(order, 1):
            scores[flow] = scores.get(flow, 0.0) + 1 / (SETTLING_RANK + rank)
    return sorted(scores, key=lambda flow: (-scores[flow], flow))


def close_packs(scores: Iterable[tuple[str, float]], threshold: float) -> list[str]:
    """Return the packs whose best flows are so close to the best of all that similarity cannot
    choose among them; none if one pack is clearly the best.

    Args:
        scores: pack and score of each flow. threshold: as a part of the best score.
    """
    best: dict[str, float] = {}
    for pack, score in scores:
        if pack:
            best[pack] = max(score, best.get(pack, score))
    highest = max(best.values(), default=0.0)
    if highest <= 0:
        return []
    near = [pack for pack in best if highest - best[pack] < threshold * highest]
    return sorted(near, key=lambda pack: (-best[pack], pack)) if len(near) > 1 else []


def _known(connection: sqlite3.Connection, model: str, size: int) -> dict[str, Vector]:
    found: dict[str, Vector] = {}
    rows = connection.execute("select text, vector from vectors where model = ?", (model,))
    for digest, data in rows:
        vector = array("f")
        vector.frombytes(data[: len(data) - len(data) % vector.itemsize])
        if len(vector) == size:
            found[digest] = vector
    return found


def _keep(connection: sqlite3.Connection, model: str, vectors: Mapping[str, Vector]) -> None:
    connection.execute("begin immediate")
    connection.execute("delete from vectors where text not in (select text from flows)")
    connection.executemany(
        "insert or replace into vectors values (?, ?, ?)",
        [(model, digest, vector.tobytes()) for digest, vector in vectors.items()],
    )
    connection.execute("commit")
