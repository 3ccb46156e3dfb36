"""The retry policy for models and agents that are away for a while: four tries with a growing pause, then the thread is paused.

A pause between tries ends at once when the thread is killed. An endpoint that says how long to wait is asked again after that time.
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
"""An endpoint that asks for a longer wait pauses the thread at once."""
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
"""How programs report that the service behind them is away."""


class ConversationCancelled(Exception):
    """The connection was cut on purpose: a kill, or the time is over."""


def is_outage(words: str) -> bool:
    """Return whether an agent's error reports, in its last lines, an outage of its service; what it logged before is its work."""
    last = "\n".join(words.strip().splitlines()[-LAST_LINES:])
    return OUTAGE.search(last[:LAST_CHARACTERS]) is not None


def pause_after(tries: int) -> float:
    """Return the pause, in seconds, after so many failed tries."""
    return float(min(FIRST_PAUSE_S * 2 ** (tries - 1), LONGEST_PAUSE_S))


def report(words: str, tries: int, pause_s: float) -> dict[str, object]:
    """Return what followers see of a failed try that is followed by another."""
    return {"text": f"{words}; try {tries + 1} of {TRIES} in {pause_s:g} s", "try": tries + 1}


def outage(words: str, tries: int) -> EnvironmentLacks:
    """Return the error that pauses the thread."""
    return EnvironmentLacks(f"{words} (tried {tries} time{'' if tries == 1 else 's'})", remedy=REMEDY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """What a retry needs from a conversation.

    wait(s): True when a kill ended it. is_cut: whether the connection was cut on purpose. spent: counts what a failed try used up.
    left_s: how long the answer may still take.
    """

    wait: Callable[[float], bool]
    is_cut: Callable[[], bool]
    spent: Callable[[Usage], None]
    left_s: Callable[[], float]
    progress: Callable[[Mapping[str, object]], None]

    def send(self, client: ModelClient, request: ModelRequest, on_piece: OnPiece) -> ModelReply:
        """Send until there is a whole reply.

        Raises:
            Stopped, ModelFailed. EnvironmentLacks: a person has to act, or the outage lasted for all tries.
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
                if self.is_cut():  # while it connected
                    raise ConversationCancelled from None
                raise
            if self.is_cut():
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
