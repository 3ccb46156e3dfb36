"""Reports of a model's turns to the observer of an effect."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from uncaged_engine.door.observing import EffectObserver, ModelTurn

from .client import ModelReply, ModelRequest
from .conversation import ChatTurn, Part, Raw, Text, ToolResult, ToolUse
from .settings import ModelSettings

STOPS: Mapping[str, str] = {"end": "stop", "refusal": "content_filter", "context": "length"}
"""Finish reasons that OpenTelemetry names otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReports:
    """Reports of the turns of one conversation. redact: removes the secrets of the settings."""

    observer: EffectObserver
    settings: ModelSettings
    redact: Callable[[object], object]

    @classmethod
    def of(
        cls,
        observer: EffectObserver | None,
        settings: ModelSettings,
        redact: Callable[[object], object],
    ) -> TurnReports | None:
        """Return the reports to an observer; None without one."""
        if observer is None:
            return None
        return cls(observer=observer, settings=settings, redact=redact)

    def report(self, request: ModelRequest, send: Callable[[], ModelReply]) -> ModelReply:
        """Return the reply of *send*, and report the turn, also one that failed."""
        begin_s = time.monotonic()
        turns = tuple(request.turns)
        reply: ModelReply | None = None
        try:
            reply = send()
        finally:
            self.observer.model_turn(
                ModelTurn(
                    provider=self.settings.wire,
                    model=self.settings.model,
                    address=self.settings.url,
                    seconds=time.monotonic() - begin_s,
                    stop="" if reply is None else finish_reason(reply),
                    usage={} if reply is None else reply.usage.document(),
                    content=lambda: self._content(request.system, turns, reply),
                    error=type(sys.exception()).__name__ if reply is None else "",
                )
            )
        return reply

    def _content(
        self, system: str, turns: tuple[ChatTurn, ...], reply: ModelReply | None
    ) -> Mapping[str, Any]:
        document: dict[str, object] = {
            "system": system,
            "input": [{"role": turn.by, "parts": plain_parts(turn.parts)} for turn in turns],
        }
        if reply is not None:
            parts = plain_parts(reply.parts)
            document["output"] = [
                {"role": "assistant", "parts": parts, "finish_reason": finish_reason(reply)}
            ]
        redacted: Any = self.redact(document)
        return dict(redacted)


def finish_reason(reply: ModelReply) -> str:
    """Return why a reply ended, in OpenTelemetry's words where it has one."""
    return "tool_calls" if reply.calls else STOPS.get(reply.stop, reply.stop)


def plain_parts(parts: tuple[Part, ...]) -> list[dict[str, object]]:
    """Return parts of a turn in the form of OpenTelemetry's messages; parts in the form of an API
    are left out.
    """
    found: list[dict[str, object]] = []
    for part in parts:
        match part:
            case Text():
                found.append({"type": "text", "content": part.text})
            case ToolUse():
                arguments = part.sent_back()
                found.append(
                    {"type": "tool_call", "id": part.id, "name": part.name, "arguments": arguments}
                )
            case ToolResult():
                found.append({"type": "tool_call_response", "id": part.call, "response": part.text})
            case Raw():
                pass
            case _:
                assert_never(part)
    return found
