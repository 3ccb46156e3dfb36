"""Choices that a person made among several readings, and the last collisions, as files in the
store's ``dispatcher`` directory. A file that cannot be read is an empty one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uncaged_bundles.storage.files import changing, read_if_there, write_atomically
from uncaged_bundles.storage.store import Store

from .candidates import CandidateReading

KEPT_COLLISIONS = 50
KEPT_PREFERENCES = 1_000
TRIMMED_BYTES = 1 << 18
"""Size of the log of collisions at which its older lines go."""
LOCK_TIMEOUT_S = 10.0
_APPENDED = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class Preferences:
    """Remembered choices of one store, newest last."""

    def __init__(self, store: Store) -> None:
        self._path = store.documents / "dispatcher" / "preferences.json"

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
    """The last collisions of one store, oldest first, as JSON Lines. Lines are only added, without
    a flush; the oldest go when the file has grown large.
    """

    def __init__(self, store: Store) -> None:
        self._path = store.documents / "dispatcher" / "collisions.jsonl"

    def append(self, record: Mapping[str, object]) -> None:
        """Add a collision."""
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        with _changing(self._path):
            handle = os.open(self._path, _APPENDED, 0o666)
            try:
                size = os.fstat(handle).st_size
                # the writer before may have died within its line
                whole = size == 0 or os.pread(handle, 1, size - 1) == b"\n"
                size += os.write(handle, line if whole else b"\n" + line)
            finally:
                os.close(handle)
            if size > TRIMMED_BYTES:
                write_atomically(self._path, b"".join(self._lines()))

    def read(self) -> list[Mapping[str, Any]]:
        """Return the last collisions."""
        found = map(_decoded, self._lines())
        return [record for record in found if isinstance(record, dict)]

    def _lines(self) -> list[bytes]:
        """Return the lines of the last collisions."""
        data = read_if_there(self._path) or b""
        return data.splitlines(keepends=True)[-KEPT_COLLISIONS:]


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
    return _decoded(read_if_there(path) or b"null")


def _decoded(data: bytes) -> object:
    """Return the value of a JSON text; None for another text."""
    try:
        found: object = json.loads(data)
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
