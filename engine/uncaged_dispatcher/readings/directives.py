"""Directives: beginnings of a sentence that say how it is run, such as `dev:` and `learn:`."""

from __future__ import annotations

import re
from typing import Literal

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass

from ..calls import REASON, WEB_GOAL

_LEARN = re.compile(
    r"\s*(?:(?:learn|record)\s*[:\uff1a]|record\s+(?=\S)|remember\s+how\s+to\s+(?=\S))",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\bhttps?://\w", re.IGNORECASE)
_DEV = re.compile(r"\s*dev\s*[:\uff1a]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectedSentence:
    """A sentence without its directive. directive: ``learn`` gives the sentence to an agent, of
    whose work a flow can be made; ``dev`` runs the sentence and learns nothing; None if there is
    none.
    """

    directive: Literal["learn", "dev"] | None = None
    sentence: str

    def goal_flow(self) -> str | None:
        """Return the flow whose agent does what a sentence after `learn` says: `web-goal` if it has
        an address, else `reason`; None without that directive.

        Raises:
            UsageError: nothing follows the directive.
        """
        if self.directive != "learn":
            return None
        if not self.sentence:
            raise UsageError("'learn:' is followed by what is to be done")
        return WEB_GOAL if _ADDRESS.search(self.sentence) else REASON

    def readable(self) -> str:
        """Return the sentence that the patterns read.

        Raises:
            UsageError: an agent gets the sentence, or nothing follows the directive.
        """
        if (flow := self.goal_flow()) is not None:
            raise UsageError(f"no pattern reads this sentence: the agent of {flow!r} gets it")
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
