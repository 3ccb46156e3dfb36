"""Protocol between the tool loop and the clients of model APIs: request, reply, usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from .conversation import ChatTurn, Part, Text, ToolUse

Stop = Literal["end", "length", "refusal", "context", "pause"]
"""Stop reason: finished (or wants tools), token limit, refusal, full context, or a pause that a new
request continues.
"""

OnPiece = Callable[[str, bool], None]
"""Callback for each piece as it arrives; the flag is true for text of the answer (else thinking, or
arguments of a call).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescription:
    """Tool of a model. parameters: a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or more turns. input: all tokens read; cached of them came from the cache,
    stored were written to it.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    stored: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            stored=self.stored + other.stored,
        )

    def document(self) -> dict[str, object]:
        """Return the usage as a record's fields."""
        return {
            "inputTokens": self.input,
            "outputTokens": self.output,
            **({"cachedTokens": self.cached} if self.cached else {}),
            **({"storedTokens": self.stored} if self.stored else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Request to a model. free: the model may use the tools; they are described either way. schema:
    the form of the answer's data.
    """

    system: str
    turns: Sequence[ChatTurn]
    tools: Sequence[ToolDescription] = ()
    free: bool = True
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """One turn of the model. detail: its explanation of the stop reason, if any."""

    parts: tuple[Part, ...]
    stop: Stop
    usage: Usage
    detail: str = ""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolUse))


class ModelClient(Protocol):
    """Client of one model at one endpoint."""

    @property
    def model(self) -> str: ...

    def send(self, request: ModelRequest, on_piece: OnPiece) -> ModelReply:
        """Send one request and read the reply to its end, without any retry.

        Raises:
            EnvironmentLacks: unknown model, refused key, or no connection.
            Busy: a retry may succeed. ReplyBroken: the reply broke off. ModelFailed: a retry cannot
                succeed.
        """
