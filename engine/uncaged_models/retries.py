"""Retry policy for models and agents with a temporary outage: four attempts with growing pauses,
then the thread is paused.

A kill ends a pause at once. An endpoint's `Retry-After` replaces the pause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from uncaged_bundles.errors import EnvironmentLacks

from .client import ModelClient, ModelReply, ModelRequest, OnPiece, Usage
from .errors import Busy, ReplyBroken

TRIES = 4
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_ASKED_S = 300.0
"""A longer `Retry-After` pauses the thread at once."""
LAST_LINES = 3
LAST_CHARACTERS = 2000
REMEDY = "wait until it answers again"
OUTAGE = re.compile(
    r"""(?:\b(?:status|error|http(?:/[0-9.]+)?|code)\W{1,3}(?:code\W{1,3})?(?:429|5[0-9][0-9])\b)
    | \b5[0-9][0-9]\W{1,3}(?:internal\ server\ error|bad\ gateway|gateway\ time-?out)
    | overloaded_error | rate_limit_error | \boverloaded\b | too\ many\ requests | rate\ limit\ (?:was\ )?(?:exceeded|reached)
    | resource_exhausted | service\ unavailable | stream\ (?:disconnected|closed|ended)\ before | \(?connection\ error
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Patterns by which programs report an outage of the service behind them."""


class ConversationCancelled(Exception):
    """The connection was cut on purpose: by a kill, or by the time limit."""


def is_outage(words: str) -> bool:
    """Return whether the last lines of an agent's error report an outage of its service. Earlier
    lines are ordinary logging.
    """
    last = "\n".join(words.strip().splitlines()[-LAST_LINES:])
    return OUTAGE.search(last[:LAST_CHARACTERS]) is not None


def pause_after(tries: int) -> float:
    """Return the pause in seconds after *tries* failed attempts."""
    return float(min(FIRST_PAUSE_S * 2 ** (tries - 1), LONGEST_PAUSE_S))


def report(words: str, tries: int, pause_s: float) -> dict[str, object]:
    """Return the progress fields of a failed attempt that is followed by another."""
    return {"text": f"{words}; try {tries + 1} of {TRIES} in {pause_s:g} s", "try": tries + 1}


def outage(words: str, tries: int) -> EnvironmentLacks:
    """Return the error that pauses the thread."""
    return EnvironmentLacks(
        f"{words} (tried {tries} time{'' if tries == 1 else 's'})", remedy=REMEDY
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Retry policy of one conversation.

    wait(s): True if a kill ended it. is_over: whether the connection was cut on purpose. spent:
    counts the usage of a failed attempt. left_s: the rest of the time limit.
    """

    wait: Callable[[float], bool]
    is_over: Callable[[], bool]
    spent: Callable[[Usage], None]
    left_s: Callable[[], float]
    progress: Callable[[Mapping[str, object]], None]

    def send(self, client: ModelClient, request: ModelRequest, on_piece: OnPiece) -> ModelReply:
        """Send until there is a whole reply.

        Raises:
            ConversationCancelled, ModelFailed. EnvironmentLacks: a person has to act, or the outage
                lasted for all attempts.
        """
        tries = 0
        while True:
            try:
                return client.send(request, on_piece)
            except Busy as exc:
                words, asked_s = str(exc), exc.retry_after_s
            except ReplyBroken as exc:
                self.spent(exc.usage)
                words, asked_s = str(exc), None
            except EnvironmentLacks:
                if self.is_over():  # during the connect
                    raise ConversationCancelled from None
                raise
            if self.is_over():
                raise ConversationCancelled
            tries += 1
            pause_s = pause_after(tries) if asked_s is None else asked_s
            if tries >= TRIES:
                raise outage(words, tries)
            if pause_s > min(LONGEST_ASKED_S, self.left_s()):
                raise outage(f"{words}; it cannot be asked again for {pause_s:g} s", tries)
            self.progress(report(words, tries, pause_s))
            if self.wait(pause_s):
                raise ConversationCancelled
