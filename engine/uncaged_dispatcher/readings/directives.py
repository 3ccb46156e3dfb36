"""Directives: beginnings of a sentence that say how it is run, such as `dev:` and `learn:`."""

from __future__ import annotations

import re
from typing import Literal

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass

_LEARN = re.compile(
    r"\s*(?:(?:learn|record)\s*[:\uff1a]|record\s+(?=\S)|remember\s+how\s+to\s+(?=\S))",
    re.IGNORECASE,
)
_DEV = re.compile(r"\s*dev\s*[:\uff1a]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectedSentence:
    """A sentence without its directive. directive: ``learn`` makes a flow of the run, ``dev`` runs
    the sentence and learns nothing; None if there is none.
    """

    directive: Literal["learn", "dev"] | None = None
    sentence: str

    def readable(self) -> str:
        """Return the sentence that the patterns read.

        Raises:
            UsageError: the directive is `learn`, or nothing follows it.
        """
        if self.directive == "learn":
            raise UsageError(
                "a flow cannot be learned from a sentence yet; without 'learn:', 'record' or 'remember how to' the sentence is run"
            )
        if self.directive is not None and not self.sentence:
            raise UsageError("'dev:' is followed by a sentence, which is run without learning")
        return self.sentence


def split_directive(text: str) -> DirectedSentence:
    """Return a sentence with its directive apart."""
    if found := _LEARN.match(text):
        return DirectedSentence(directive="learn", sentence=text[found.end() :].strip())
    if found := _DEV.match(text):
        return DirectedSentence(directive="dev", sentence=text[found.end() :].strip())
    return DirectedSentence(sentence=text.strip())
