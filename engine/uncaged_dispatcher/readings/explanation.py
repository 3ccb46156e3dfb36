"""Explanation of a sentence: the readings of every tier, and why the first one won. Nothing is
started, and no model is asked.
"""

from __future__ import annotations

from uncaged_bundles.records import dataclass

from ..calls import Interpretation, Miss, Question
from .candidates import CandidateReading
from .context import SentenceContext
from .directives import split_directive
from .interpreter import Interpreter

_CRITERIA = (
    "it has no free text",
    "fewer of its parameters are implicit",
    "more of its words are required",
    "it matches more words",
    "it has less free text",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The readings of a sentence, best first, and the result that `interpret` would return."""

    sentence: str
    readings: tuple[CandidateReading, ...]
    result: Interpretation | Question | Miss
    why: str

    def document(self) -> dict[str, object]:
        """Return the explanation as JSON."""
        kind = {Interpretation: "calls", Question: "question", Miss: "miss"}[type(self.result)]
        return {
            "sentence": self.sentence,
            "readings": [
                {
                    "calls": [call.document() for call in one.calls],
                    "by": one.by,
                    "rule": one.pattern,
                    "pack": one.pack,
                    "score": {
                        "freeText": one.rank.has_free_text,
                        "implicit": one.implicit,
                        "requiredParts": -one.rank.fewer_required_parts,
                        "parts": -one.rank.fewer_parts,
                        "freeCharacters": one.rank.free_text,
                    },
                    "refused": one.refused,
                    "disabled": one.disabled,
                    "away": one.away,
                }
                for one in self.readings
            ],
            "result": kind,
            kind: self.result.document(),
            "why": self.why,
        }


def explain(
    interpreter: Interpreter, text: str, *, context: SentenceContext | None = None
) -> Explanation:
    """Return all readings of a sentence and why one of them won.

    Raises:
        SentenceError: the sentence is too long, or has characters that are not read.
        UsageError: its directive cannot be followed.
    """
    sentence = split_directive(text).readable()
    readings = tuple(interpreter.candidates(sentence, context=context))
    result = interpreter.interpret(sentence, context=context, log=False)
    return Explanation(
        sentence=sentence, readings=readings, result=result, why=_why(result, readings)
    )


def _why(result: Interpretation | Question | Miss, readings: tuple[CandidateReading, ...]) -> str:
    match result:
        case Miss(why=why):
            return why
        case Question(choices=choices):
            return f"{len(choices)} readings are equally good, and the settings say to ask"
        case Interpretation(calls=calls, remembered=remembered):
            if remembered:
                return "you chose this reading before"
            runnable = [one for one in readings if not (one.refused or one.disabled or one.away)]
            winner = next((one for one in runnable if one.calls == calls), None)
            others = [one for one in runnable if one is not winner]
            if winner is None or not others:
                return "it is the only reading that can run"
            second = others[0]
            for place, criterion in enumerate(_CRITERIA):
                if winner.order[place] < second.order[place]:
                    return f"{criterion} than the next: {second.pattern}" if place else criterion
            return "its score is that of others, and the settings choose it"
