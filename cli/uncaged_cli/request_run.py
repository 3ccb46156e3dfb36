"""Run of one request of a conversation: prints what was understood, asks the person, and follows
the thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any

from uncaged_bundles.errors import UsageError
from uncaged_bundles.ids import ThreadId

from .display import json_output
from .display.output import note
from .display.sentences import show_miss, show_result, understood
from .display.started import follow_or_print
from .inputs.answers import respond
from .inputs.consent import is_attended

if TYPE_CHECKING:
    from uncaged_dispatcher.conversations.requests import ConversationRequest
    from uncaged_dispatcher.conversations.sessions import ConversationSession
    from uncaged_engine.api import Engine
    from uncaged_engine.worker.client import Launching

EXIT_INTERRUPTED = 130


def run_request(
    engine: Engine,
    session: ConversationSession,
    request: ConversationRequest,
    *,
    detach: bool,
    as_json: bool,
    verbose: bool,
    launching: Launching | None = None,
) -> int:
    """Submit a request and follow it to its end, or with *detach* until its thread has started.

    Returns:
        The exit code of its thread, or of the first that failed among those that its result made.
    """
    from uncaged_dispatcher.conversations.live import Caller

    caller = Caller(
        environment=dict(os.environ),
        attended=is_attended(detach=detach, as_json=as_json),
        launching=launching,
    )
    codes: dict[str, int] = {}
    verb: list[str] = []
    # a detached request prints one document
    fields: dict[str, object] = {}
    with launching or nullcontext(), closing(session.run(request, caller, respond)) as events:
        for event in events:
            id = event["id"]
            match event["event"]:
                case "accepted" if event["position"] and not as_json:
                    note(f"waiting for {event['position']} requests before this one")
                case "reading" if detach and as_json:
                    fields = {"reading": event["reading"]}
                case "reading":
                    _show_reading(event["reading"], as_json=as_json)
                case "thread":
                    codes[id] = follow_or_print(
                        engine,
                        ThreadId(event["threadId"]),
                        detach=detach,
                        as_json=as_json,
                        verbose=verbose,
                        fields=fields,
                    )
                    if detach or codes[id] == EXIT_INTERRUPTED:
                        return codes[id]
                case "result" if event["result"]["status"] == "verb":
                    verb = _verb(event["result"]["details"], as_json=as_json)
                case "result" if detach and as_json:
                    json_output.document({**fields, "result": event["result"]})
                    return int(event["result"]["exitCode"])
                case "result":
                    _show_result(event["result"], as_json=as_json, followed=id in codes)
                    codes.setdefault(id, int(event["result"]["exitCode"]))
                case _:
                    pass
    if verb:
        # after the session: the verb may change this conversation
        return run_verb(verb)
    return next((code for code in codes.values() if code), 0)


def _verb(details: Mapping[str, Any], *, as_json: bool) -> list[str]:
    """Return the words of a verb that a sentence asks for; an argument is never an option."""
    options = ["--json"] if as_json else []
    arguments = [str(text) for text in details["arguments"]]
    return [*map(str, details["verb"]), *options, *(["--", *arguments] if arguments else [])]


def run_verb(words: Sequence[str]) -> int:
    """Run a verb of this command; *words* begin with its name, with or without an @."""
    from .main import run

    name = words[0].removeprefix("@")
    if not name:
        raise UsageError("@ is followed by a verb, as in: uncaged-workflow do '@threads'")
    if name == "do":
        raise UsageError("@do is this command itself; write the sentence without it")
    return run([name, *words[1:]])


def _show_reading(reading: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        json_output.line({"event": "understood", "reading": reading})
    else:
        note(*understood(reading))


def _show_result(ended: Mapping[str, Any], *, as_json: bool, followed: bool) -> None:
    """Print a result. followed: the output of its thread was shown, with the thread's message."""
    if as_json:
        json_output.line({"event": "result", "result": ended})
        return
    if not followed:
        from .display.output import Styled

        note(Styled("error: " if not ended["success"] else "", "red"), str(ended["message"]))
    if ended["status"] == "missed":
        show_miss(ended.get("details") or {})
    show_result(ended)
    sys.stdout.flush()
