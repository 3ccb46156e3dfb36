"""Conversations in tests: a reader of sentences, and a process that submits one request, as
`python -m testbed.conversing STORE CONVERSATION REQUEST SENTENCE [WORD…]`.

It prints each event as a line of JSON. Words: ``agree`` answers questions with yes, ``silent``
never answers one, ``detach`` ends when the thread has started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.calls import Call, Interpretation, Miss, Offer, Question
from uncaged_dispatcher.conversations.live import Caller
from uncaged_dispatcher.conversations.records import ConversationState
from uncaged_dispatcher.conversations.requests import ConversationRequest
from uncaged_dispatcher.conversations.sessions import ConversationSession
from uncaged_engine.api import Engine


class WordReader:
    """Reads ``FLOW NUMBER``, several joined by ``then``; ``either`` asks, ``maybe`` is a model's
    reading, and ``sure`` is marked.
    """

    def __call__(
        self, request: ConversationRequest, state: ConversationState
    ) -> Interpretation | Question | Miss:
        del state
        head, _, rest = request.text.partition(" ")
        match head:
            case "either":
                choices = tuple(
                    Offer(id=str(n), label=f"count {n}", interpretation=_reading(f"count {n}"))
                    for n in (1, 2)
                )
                return Question(
                    kind="collision", sentence=request.text, text="Which?", choices=choices
                )
            case "maybe":
                return _reading(rest, by="model")
            case "@conversation":
                return Interpretation(calls=(Call(flow=request.text),), by="verb", rule="words")
            case "sure":
                return _reading(rest, confirm=(rest.partition(" ")[0],))
            case (
                "count"
                | "marked"
                | "planned"
                | "sleeper"
                | "gone"
                | "asking"
                | "choosing"
                | "shown"
            ):
                return _reading(request.text)
            case _:
                return Miss(sentence=request.text, why=f"no rule reads {request.text!r}")

    def translate(
        self, request: ConversationRequest, state: ConversationState, missed: Miss, **_more: object
    ) -> Interpretation | Question | Miss:
        del request, state
        return missed

    def learn(self, sentence: str, call: Call, thread: str) -> None:
        """Learn nothing."""

    def needs_consent(self, flow: str) -> bool:
        return flow == "marked-flow"

    def chosen(self, question: Question, choice: str, *, remember: bool) -> Interpretation:
        del remember
        return question.choice(choice).interpretation


def _reading(text: str, **fields: object) -> Interpretation:
    calls = []
    for part in text.split(" then "):
        flow, _, number = part.partition(" ")
        calls.append(Call(flow=flow, params={"n": int(number)} if number else {}))
    return Interpretation(calls=tuple(calls), **{"by": "grammar", "rule": "words", **fields})  # type: ignore[arg-type]  # a test names fields that there are


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def session(engine: Engine, conversation: str) -> ConversationSession:
    """Access to a conversation that reads sentences word by word."""
    return ConversationSession(engine, conversation, WordReader, now_ms)


def sentence(id: str, text: str, **fields: object) -> ConversationRequest:
    """A request from the present directory."""
    return ConversationRequest(id=ThreadId(id), text=text, directory=os.getcwd(), **fields)  # type: ignore[arg-type]  # noqa: PTH109 - the same


def agree(_question: Mapping[str, object]) -> Mapping[str, object]:
    """Answer yes, or the first choice."""
    return {"run": True, "choice": "1"}


def decline(_question: Mapping[str, object]) -> Mapping[str, object]:
    return {"run": False}


def stay_silent(_question: Mapping[str, object]) -> Mapping[str, object]:
    signal.pause()
    return {}


def main() -> None:
    root, conversation, request, text, *words = sys.argv[1:]
    engine = Engine(Store.open(Path(root)))
    access = session(engine, conversation)
    respond = agree if "agree" in words else stay_silent if "silent" in words else decline
    try:
        for event in access.run(sentence(request, text), Caller(), respond):
            os.write(1, json.dumps(event).encode() + b"\n")
            if event["event"] == "thread" and "detach" in words:
                return
    except UncagedError as problem:
        os.write(1, json.dumps({"event": "error", "message": str(problem)}).encode() + b"\n")


if __name__ == "__main__":
    main()
