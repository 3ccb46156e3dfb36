"""Choices that a person made among several readings, and the last collisions, as files in the
store's ``dispatcher`` directory. A file that cannot be read is an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uncaged_bundles.storage.files import changing, read_if_there, write_atomically
from uncaged_bundles.storage.store import Store

from .candidates import CandidateReading

KEPT_COLLISIONS = 50
KEPT_PREFERENCES = 1_000
LOCK_TIMEOUT_S = 10.0


class Preferences:
    """Remembered choices of one store, newest last."""

    def __init__(self, store: Store) -> None:
        self._path = store.root / "dispatcher" / "preferences.json"

    def find(
        self, sentence: str, candidates: Sequence[CandidateReading]
    ) -> CandidateReading | None:
        """Return the candidate that the person chose before in the same situation."""
        chosen = self.all().get(situation(sentence, candidates))
        return next((one for one in candidates if identity(one, candidates) == chosen), None)

    def keep(
        self, sentence: str, candidates: Sequence[CandidateReading], chosen: CandidateReading
    ) -> None:
        """Remember a choice."""
        key = situation(sentence, candidates)
        with _changing(self._path):
            kept = {name: value for name, value in self.all().items() if name != key}
            kept = dict(list(kept.items())[1 - KEPT_PREFERENCES :])
            _write(self._path, {**kept, key: identity(chosen, candidates)})

    def all(self) -> Mapping[str, Any]:
        """Return the remembered choices by their situation."""
        found = _read(self._path)
        return found if isinstance(found, dict) else {}

    def forget(self, key: str) -> bool:
        """Remove one choice; return whether there was one."""
        with _changing(self._path):
            kept = dict(self.all())
            found = kept.pop(key, None)
            _write(self._path, kept)
        return found is not None


class CollisionLog:
    """The last collisions of one store, oldest first."""

    def __init__(self, store: Store) -> None:
        self._path = store.root / "dispatcher" / "collisions.json"

    def append(self, record: Mapping[str, object]) -> None:
        """Add a collision; the oldest goes when there are more than fifty."""
        with _changing(self._path):
            _write(self._path, [*self.read(), dict(record)][-KEPT_COLLISIONS:])

    def read(self) -> list[Mapping[str, Any]]:
        """Return the last collisions."""
        found = _read(self._path)
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def situation(sentence: str, candidates: Sequence[CandidateReading]) -> str:
    """Return the key of a choice: the flows that were offered. Readings of one flow differ by the
    sentence only, so it is the key then.
    """
    flows = sorted("+".join(candidate.flows) for candidate in candidates)
    if len(set(flows)) == len(flows):
        return " | ".join(flows)
    return " ".join(sentence.casefold().split())


def identity(candidate: CandidateReading, candidates: Sequence[CandidateReading]) -> str:
    """Return the text that distinguishes a candidate from the others in its situation."""
    flows = ["+".join(one.flows) for one in candidates]
    if len(set(flows)) == len(flows):
        return "+".join(candidate.flows)
    return json.dumps([call.document() for call in candidate.calls], sort_keys=True)


def _read(path: Path) -> object:
    try:
        found: object = json.loads(read_if_there(path) or b"null")
    except ValueError:
        return None
    return found


def _write(path: Path, value: object) -> None:
    write_atomically(path, json.dumps(value, ensure_ascii=False, indent=1).encode())


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with changing(path, timeout_s=LOCK_TIMEOUT_S):
        yield
