"""Tool loops of the model package against the model server, over either wire format."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from uncaged_engine.door.effects import Cancel
from uncaged_models.client import ToolDescription
from uncaged_models.connection import open_client
from uncaged_models.conversation import Conversation, ToolResult, ToolUse, user_turn
from uncaged_models.loop import LoopLimits, NoTools, ToolLoop, Tools
from uncaged_models.settings import Wire, read_settings

from .modelserver import ModelServer

WIRES: tuple[Wire, ...] = ("anthropic", "openai")
KEY = "sk-planted-0123456789"


@dataclass(slots=True)
class RecordingTools:
    """Tools that record their calls."""

    used: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    described: Sequence[ToolDescription] = (
        ToolDescription(
            name="note",
            description="Note a text.",
            parameters={"type": "object", "properties": {"text": {"type": "string"}}},
        ),
        ToolDescription(
            name="look",
            description="Look at the notes.",
            parameters={"type": "object", "properties": {}},
        ),
    )

    def use(self, call: ToolUse, left_s: float) -> ToolResult:  # noqa: ARG002 - the protocol's signature
        try:
            self.used.append((call.name, call.parsed()))
        except ValueError as exc:
            return ToolResult(call=call.id, text=str(exc), failed=True)
        return ToolResult(call=call.id, text=f"noted {len(self.used)}")

    def shown(self, call: ToolUse) -> Mapping[str, object]:
        return {"tool": call.name}


@dataclass(slots=True, kw_only=True)
class OpenLoop:
    """A tool loop and the progress that followers received."""

    loop: ToolLoop
    cancel: Cancel
    progress: list[Mapping[str, object]]


@contextmanager
def open_loop(
    server: ModelServer,
    wire: Wire,
    *,
    prompt: str = "Say it.",
    system: str = "Be brief.",
    tools: Tools | None = None,
    turns: int = 20,
    seconds: float = 30.0,
    schema: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: object,
) -> Iterator[OpenLoop]:
    chosen = read_settings(
        wire, {"baseUrl": server.base_url(wire), "model": "tiny", "key": KEY, **settings}
    )
    cancel, progress = Cancel(), list[Mapping[str, object]]()
    with open_client(chosen, environment or {}) as (client, connection):
        loop = ToolLoop(
            client,
            Conversation(system=system, turns=[user_turn(prompt)]),
            tools=tools or NoTools(),
            limits=LoopLimits(seconds=seconds, turns=turns),
            connection=connection,
            cancel=cancel,
            progress=progress.append,
            schema=schema,
        )
        yield OpenLoop(loop=loop, cancel=cancel, progress=progress)


class Clock:
    """Stopwatch of a test."""

    def __enter__(self) -> Clock:
        self._begin_s = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._begin_s
