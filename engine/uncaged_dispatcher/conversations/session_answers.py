"""Answers of one process's person to the questions of a conversation's requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.records import dataclass

from .live import RequestEvent
from .thread_questions import KIND

MAX_TRIES = 5
"""So many answers that do not fit the question of a thread end the request's session."""
Respond = Callable[[Mapping[str, Any]], Mapping[str, object]]
"""Asks the person a question and returns the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAnswer:
    """Answer to a question of a request. question: the number of its record."""

    id: str
    question: int
    value: Mapping[str, object]


class SessionAnswers:
    """Answers of this process's person. What a holder that died has lost is given to the next one,
    without asking the person again.
    """

    def __init__(self, respond: Respond) -> None:
        self._respond = respond
        self._asked: dict[int, tuple[str, Mapping[str, Any]]] = {}
        self._given: dict[int, Mapping[str, object]] = {}
        self._tries: dict[int, int] = {}

    def to(self, event: RequestEvent) -> SessionAnswer | None:
        """Return the answer to an event's question; None for an event that asks nothing."""
        match event["event"]:
            case "question" if "parent" in event["question"]:
                return None  # the parent is being followed, and its output names the child
            case "question":
                id = event["id"]
            case "blocked" if not event["attended"]:
                id = event["of"]
            case _:
                return None
        self._asked[event["seq"]] = id, event["question"]
        return self._answer(event["seq"], event["question"])

    def replied(self, question: int, check: Callable[[], None]) -> SessionAnswer | None:
        """Handle the reply to an answer. check: raises its error.

        Returns:
            Another answer, if this one did not fit the question of a thread.
        """
        _, asked = self._asked[question]
        try:
            check()
        except RefusedError:
            # a thread was answered by another process, which comes as an event
            if asked.get("kind") != KIND:
                raise
        except UsageError as problem:
            self._tries[question] = self._tries.get(question, 0) + 1
            if asked.get("kind") != KIND or self._tries[question] == MAX_TRIES:
                raise
            self._given.pop(question, None)
            return self._answer(question, {**asked, "problem": str(problem)})
        return None

    def _answer(self, question: int, asked: Mapping[str, Any]) -> SessionAnswer:
        if question not in self._given:
            self._given[question] = self._respond(asked)
        return SessionAnswer(
            id=self._asked[question][0], question=question, value=self._given[question]
        )
