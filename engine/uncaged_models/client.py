"""What the tool loop asks of a model, and what it gets: the one door between it and a wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from .conversation import ChatTurn, Part, Text, ToolCall

Stop = Literal["end", "length", "refusal", "context", "pause"]
"""Why a model stopped: it was done (or wants tools), its tokens were used up, it refused, its context is full, it wants to be asked on."""

OnPiece = Callable[[str, bool], None]
"""Told of each piece as it arrives; the truth value says whether it is text of the answer (else thinking, or arguments of a call)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescription:
    """parameters: a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or more turns. input: all that the model read; of these, cached came from the cache and stored were written to it."""

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
        """As it stands in a record."""
        return {
            "inputTokens": self.input,
            "outputTokens": self.output,
            **({"cachedTokens": self.cached} if self.cached else {}),
            **({"storedTokens": self.stored} if self.stored else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request. free: the model may use the tools; they are described either way. schema: the answer is data of this form."""

    system: str
    turns: Sequence[ChatTurn]
    tools: Sequence[ToolDescription] = ()
    free: bool = True
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """One turn of the model. detail: what it says about why it stopped, if anything."""

    parts: tuple[Part, ...]
    stop: Stop
    usage: Usage
    detail: str = ""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


class ModelClient(Protocol):
    """One model at one endpoint."""

    @property
    def model(self) -> str: ...

    def send(self, request: ModelRequest, on_piece: OnPiece) -> ModelReply:
        """Ask once and read the answer to its end, without any retry.

        Raises:
            EnvironmentLacks: no such model, a key that is refused, nobody at the address.
            Busy: later it may work. Cut: the answer broke off. ModelFailed: this request will never work.
        """
