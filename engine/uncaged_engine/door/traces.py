"""Trace of an agent within one role step: its tool calls in order, limited in size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b

from .observing import EffectObserver, ObservedCall

__all__ = ["AgentTrace"]

_FORMAT = 1
_MAX_CALLS = 500
_HEAD_CHARACTERS = 400
_MAX_ARGUMENT_CHARACTERS = 4_000
_MAX_NOTE_CHARACTERS = 1 << 20


class AgentTrace:
    """Tool calls that an agent made. Secrets are replaced before anything is cut.

    Args:
        redact: replaces secrets in JSON data. observer: gets each call; None if the thread is not
            observed.
    """

    def __init__(
        self,
        redact: Callable[[object], object] = lambda value: value,
        observer: EffectObserver | None = None,
    ) -> None:
        self._redact = redact
        self._observer = observer
        self._calls: list[dict[str, object]] = []
        self._notes: dict[str, object] = {}
        self._left_out = 0

    @property
    def is_empty(self) -> bool:
        """Whether the agent called no tool."""
        return not self._calls and not self._notes

    def add(
        self,
        tool: str,
        arguments: object,
        result: str | None = None,
        *,
        failed: bool = False,
        duration_ms: int | None = None,
        kind: str = "",
    ) -> None:
        """Add a call; those beyond the limit are only counted.

        Args:
            result: None if the protocol does not say it. kind: of the call, where the protocol has
                kinds.
        """
        if len(self._calls) >= _MAX_CALLS:
            self._left_out += 1
            return
        call: dict[str, object] = {
            "number": len(self._calls) + 1,
            "tool": self._text(tool)[:_HEAD_CHARACTERS],
            "arguments": _bounded(self._redact(arguments)),
            "failed": failed,
        }
        if kind:
            call["kind"] = kind
        if duration_ms is not None:
            call["durationMs"] = duration_ms
        if result is not None:
            result = self._text(result)
            data = result.encode("utf-8", "backslashreplace")
            call["result"] = {
                "head": result[:_HEAD_CHARACTERS],
                "characters": len(result),
                "digest": blake2b(data, digest_size=16).hexdigest(),
            }
        self._calls.append(call)
        if self._observer is not None:
            self._observer.tool_call(
                ObservedCall(
                    tool=str(call["tool"]),
                    seconds=None if duration_ms is None else duration_ms / 1000,
                    failed=failed,
                    arguments=call["arguments"],
                    result=None if result is None else result[:_MAX_ARGUMENT_CHARACTERS],
                )
            )

    def note(self, name: str, value: object) -> None:
        """Add what a set of tools knows beside its calls; it is left out if it is too large."""
        if len(json.dumps(value, ensure_ascii=False)) <= _MAX_NOTE_CHARACTERS:
            self._notes[name] = self._redact(value)

    def encoded(self) -> bytes:
        """Return the trace as it is kept in a blob."""
        return json.dumps(self.document(), ensure_ascii=False, separators=(",", ":")).encode()

    def document(self) -> dict[str, object]:
        """Return the trace as JSON data."""
        return {
            "format": _FORMAT,
            "calls": self._calls,
            **({"leftOut": self._left_out} if self._left_out else {}),
            **self._notes,
        }

    def _text(self, text: str) -> str:
        return str(self._redact(text))


def _bounded(arguments: object) -> object:
    """Return arguments as JSON data; long ones as the head of their text."""
    text = json.dumps(arguments, ensure_ascii=False, default=str)
    if len(text) <= _MAX_ARGUMENT_CHARACTERS:
        return dict(arguments) if isinstance(arguments, Mapping) else arguments
    return {"head": text[:_MAX_ARGUMENT_CHARACTERS], "characters": len(text)}
