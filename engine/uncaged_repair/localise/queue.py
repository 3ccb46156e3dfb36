"""Queue of patch candidates for one group of failing tests, the most promising first. Each is made
when it is asked for.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..edits.candidates import candidates
from ..edits.edit import SourceEdit
from ..edits.facts import ValueFacts
from ..edits.spans import SourceFile
from ..harness.baseline import Baseline
from ..harness.results import Line
from .ranking import Read


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchCandidate:
    """Edit with its file and its score."""

    score: float
    edit: SourceEdit
    source: SourceFile

    @property
    def result(self) -> bytes:
        """Return the whole changed file, in its own encoding."""
        return self.source.encode(self.edit.apply(self.source.data))


class CandidateQueue:
    """Candidates by number, best first. It is not safe for threads: the caller has a lock."""

    def __init__(self, candidates: Iterator[PatchCandidate]) -> None:
        self._waiting = candidates
        self._made: list[PatchCandidate] = []

    def __getitem__(self, number: int) -> PatchCandidate:
        """Return the candidate with this *number*, from 0.

        Raises:
            IndexError: there are fewer.
        """
        while len(self._made) <= number:
            candidate = next(self._waiting, None)
            if candidate is None:
                raise IndexError(number)
            self._made.append(candidate)
        return self._made[number]

    def __bool__(self) -> bool:
        try:
            self[0]
        except IndexError:
            return False
        return True


def queue_of(
    baseline: Baseline, group: Sequence[str], suspicion: Mapping[Line, float], read: Read
) -> CandidateQueue:
    """Return the queue for *group*; the caller charges the processor time of what it takes."""
    facts = baseline.facts(group)
    degrees: dict[str, dict[int, float]] = {}
    for (path, line), degree in suspicion.items():
        degrees.setdefault(path, {})[line] = degree
    sources = [(source, degrees[path]) for path in sorted(degrees) if (source := read(path))]
    return CandidateQueue(heapq.merge(*(_of_file(*each, facts) for each in sources), key=_place))


def _of_file(
    source: SourceFile, degrees: Mapping[int, float], facts: ValueFacts
) -> Iterator[PatchCandidate]:
    for score, edit in candidates(source, degrees, facts):
        yield PatchCandidate(score=score, edit=edit, source=source)


def _place(candidate: PatchCandidate) -> tuple[float, str, int, str]:
    edit = candidate.edit
    return -candidate.score, edit.path, edit.start, edit.after
