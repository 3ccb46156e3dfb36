"""Transcript of a turn: the answer, the usage, and a live view at bounded cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from uncaged_engine.door.traces import AgentTrace

from ..tools.working_directory import WorkingDirectory
from ..usage import is_plausible
from .paths import display_path
from .permission import ToolCall

if TYPE_CHECKING:
    from acp.schema import Usage

MAX_ANSWER_CHARACTERS = 1 << 20
MAX_LINE_CHARACTERS = 200
MAX_CALLS = 500
RECENT_CHUNKS = 50
PAUSE_S = 0.1
"""Followers get changes at most this often."""


class Transcript:
    """Transcript of one turn, used only in the event loop."""

    def __init__(
        self,
        workdir: WorkingDirectory,
        progress: Callable[[Mapping[str, object]], None],
        remark: Callable[[str], None],
    ) -> None:
        self.on_overflow: Callable[[str], None] = lambda _problem: None
        """Called when the answer exceeds its limit."""
        self._workdir = workdir
        self._progress = progress
        self._remark = remark
        self._segments: list[list[str]] = [[]]
        self._characters = 0
        self._calls: dict[str, ToolCall] = {}
        self._shown: dict[str, object] = {}
        self._cost: float | None = None
        self._cost_before: float | None = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, *, continued: bool) -> None:
        """Drop the transcript so far: an agent that loads a session replays it.

        Args:
            continued: the session has an earlier cost, known only if the agent reported it.
        """
        if continued:
            self._cost_before = self._cost
        self._segments, self._characters, self._calls, self._shown = [[]], 0, {}, {}

    def take(self, params: object) -> None:
        """Process a ``session/update``; an unknown kind changes nothing."""
        update = params.get("update") if isinstance(params, Mapping) else None
        if not isinstance(update, Mapping):
            return
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._add_text(update.get("content"))
            case "tool_call" | "tool_call_update" as kind:
                self.call(str(update.get("toolCallId")), update)
                if kind == "tool_call" and self._segments[-1]:
                    self._segments.append([])
            case "usage_update":
                self._add_usage(update)
            case _:
                return
        self._schedule_report()

    def call(self, number: str, fields: Mapping[str, object]) -> ToolCall:
        """Return a tool call, updated with *fields*."""
        known = self._calls.pop(number, None)
        call = self._calls[number] = (known or ToolCall()).updated(fields)
        if len(self._calls) > MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        if known is None and call.title:
            self._remark(f"{call.kind}: {call.title}")
        names = {
            "tool": call.title,
            "file": display_path(self._workdir, call.paths[-1]) if call.paths else "",
        }
        self._shown.update({name: one_line(text) for name, text in names.items() if text})
        return call

    def keep(self, trace: AgentTrace) -> None:
        """Add the tool calls to the trace of the step."""
        for call in self._calls.values():
            arguments = call.arguments or {"kind": call.kind, "paths": list(call.paths)}
            trace.add(call.title or call.kind, arguments, failed=call.failed, kind=call.kind)

    def answer(self) -> str:
        """Return the agent's text from the last segment with a fenced block on; earlier remarks are
        no part of the answer.
        """
        texts = ["".join(segment).strip("\n") for segment in self._segments]
        begin = next((index for index in reversed(range(len(texts))) if "```" in texts[index]), 0)
        return "\n\n".join(text for text in texts[begin:] if text.strip())

    def usage(self, tokens: Usage | None) -> dict[str, object]:
        """Return the usage of the turn, as far as the agent reports it."""
        used = {} if tokens is None else usage_of(tokens)
        if (
            self._cost is not None
            and self._cost_before is not None
            and self._cost >= self._cost_before
        ):
            used["cost"] = self._cost - self._cost_before
        return used

    def finish(self) -> None:
        """Send followers the last report."""
        if self._timer is not None:
            self._timer.cancel()
            self._report()

    def _add_text(self, content: object) -> None:
        text = content.get("text") if isinstance(content, Mapping) else None
        if not isinstance(text, str):
            return
        self._characters += len(text)
        if self._characters > MAX_ANSWER_CHARACTERS:
            self.on_overflow(f"its answer is longer than {MAX_ANSWER_CHARACTERS} characters")
            return
        self._segments[-1].append(text)

    def _add_usage(self, update: Mapping[str, object]) -> None:
        cost, used = update.get("cost"), update.get("used")
        amount = (
            cost.get("amount")
            if isinstance(cost, Mapping) and cost.get("currency") == "USD"
            else None
        )
        if is_plausible(amount):
            self._cost = float(amount)
        if is_plausible(used):
            self._shown["tokens"] = used

    def _schedule_report(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_S, self._report)

    def _report(self) -> None:
        self._timer = None
        fields = dict(self._shown)
        recent = "".join(
            "".join(segment[-RECENT_CHUNKS:]) + "\n" for segment in self._segments[-2:]
        )
        lines = [line for line in recent.splitlines() if line.strip()]
        if lines:
            fields["text"] = one_line(lines[-1])
        used = self.usage(None)
        self._progress({**fields, **({"usage": used} if used else {})})


def usage_of(tokens: Usage) -> dict[str, object]:
    """Return the agent's numbers under the engine's names; cached tokens are a part of the input,
    however the agent counts them.
    """
    if not all(
        is_plausible(number)
        for number in (tokens.total_tokens, tokens.input_tokens, tokens.output_tokens)
    ):
        return {}
    cached = (tokens.cached_read_tokens or 0) + (tokens.cached_write_tokens or 0)
    rest = tokens.total_tokens - tokens.output_tokens - (tokens.thought_tokens or 0)
    if rest < tokens.input_tokens:
        rest = tokens.total_tokens - tokens.output_tokens
    input_tokens = (
        tokens.input_tokens + cached
        if tokens.input_tokens + cached <= rest
        else tokens.input_tokens
    )
    used: dict[str, object] = {
        "inputTokens": input_tokens,
        "outputTokens": max(tokens.total_tokens - input_tokens, tokens.output_tokens),
    }
    return {**used, "cachedTokens": min(cached, input_tokens)} if cached else used


def one_line(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= MAX_LINE_CHARACTERS else f"{line[: MAX_LINE_CHARACTERS - 1]}…"
