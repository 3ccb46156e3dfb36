"""Tool loop: sends requests to a model and runs its tool calls until it has answered, within limits
of turns, time and tokens.

Rule 1: every call of a turn gets exactly one result, even if it is malformed, and all of them go
back in one turn.
Rule 2: the last allowed turn has no tools, so that an answer comes.
Rule 3: the usage is known at every moment, including that of failed turns.
Rule 4: a final result is the answer, word for word, without a further request.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from uncaged_engine.door.effects import Cancel

from .client import ModelClient, ModelReply, ModelRequest, ToolDescription, Usage
from .connection import ModelConnection
from .conversation import ChatTurn, Conversation, Text, ToolResult, ToolUse, user_turn
from .errors import Endpoint, ModelFailed
from .observing import TurnReports
from .progress import Meter, Progress, ReplyReporter
from .retries import ConversationCancelled, RetryPolicy

MAX_TURNS = 100
MAX_CONTINUATIONS = 4

GO_ON = "Your answer was cut off because it was too long for one turn. Go on exactly where it broke off, without repeating anything."
LAST_TURN = "This is your last turn: no tools any more. Give your final answer now, in the form that you were asked for."
NOT_BEGUN = "not done: a call before it gave the answer"
CUT_ARGUMENTS = (
    "the arguments were cut off because the turn was too long; do the same in smaller pieces"
)


class Tools(Protocol):
    """Tools of a model."""

    @property
    def described(self) -> Sequence[ToolDescription]: ...

    def use(self, call: ToolUse, left_s: float) -> ToolResult:
        """Run a call within *left_s*; problems are in the result."""

    def shown(self, call: ToolUse) -> Mapping[str, object]:
        """Return the fields of a call for followers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimits:
    """Limits of one answer. turns: number of requests. seconds: for all of them."""

    seconds: float
    turns: int = MAX_TURNS


class NoTools:
    """Empty set of tools."""

    described: Sequence[ToolDescription] = ()

    def use(self, call: ToolUse, left_s: float) -> ToolResult:  # noqa: ARG002 - the protocol's signature
        return ToolResult(
            call=call.id, text=f"there is no tool {call.name!r}; there are none", failed=True
        )

    def shown(self, call: ToolUse) -> Mapping[str, object]:
        return {"tool": call.name}


class ToolLoop:
    """Loop over one conversation with one model; `answer` may be called again after more turns were
    added.

    ended_by_tool: the last answer is a tool's result, word for word.
    """

    def __init__(
        self,
        client: ModelClient,
        conversation: Conversation,
        *,
        tools: Tools,
        limits: LoopLimits,
        connection: ModelConnection,
        cancel: Cancel,
        progress: Progress,
        schema: Mapping[str, Any] | None = None,
        reports: TurnReports | None = None,
    ) -> None:
        self.conversation = conversation
        self.meter = Meter(model=client.model, begin_s=time.monotonic())
        self.ended_by_tool = False
        self._client = client
        self._tools = tools
        self._limits = limits
        self._connection = connection
        self._cancel = cancel
        self._progress = progress
        self._schema = schema
        self._reports = reports
        self._reporter = ReplyReporter(progress, self.meter)
        self._retries = RetryPolicy(
            wait=self._wait,
            is_over=lambda: connection.is_over,
            spent=self._count_cut,
            left_s=self._left_s,
            progress=progress,
        )

    def answer(self) -> str:
        """Return the text of the model's last turn, after its tool calls.

        Raises:
            ModelFailed: refusal, timeout, or no end. ConversationCancelled: killed.
                EnvironmentLacks: the model is unavailable.
        """
        deadline_s = self.meter.begin_s + self._limits.seconds
        with self._cancel.on_request(self._connection.begin(deadline_s)):
            try:
                return self._to_the_end()
            except ConversationCancelled:
                if self._cancel.requested:
                    raise
                raise ModelFailed(
                    f"{self._client.model} gave no answer within {self._limits.seconds:g} s",
                    kind="timeout",
                ) from None

    def _to_the_end(self) -> str:
        text: list[str] = []
        continuations = 0
        for turn in range(1, self._limits.turns + 1):
            last = turn == self._limits.turns
            reply = self._turn(last)
            text.append(reply.text)
            if reply.calls and not last:
                final = self._use(reply)
                if final is not None:
                    return final
                text.clear()
            elif reply.stop == "length" and not last:
                continuations += 1
                if not reply.text or continuations > MAX_CONTINUATIONS:
                    raise ModelFailed(
                        f"{self._client.model} used up maxTokens {continuations} times and did not finish; raise it"
                    )
                self.conversation.turns.append(user_turn(GO_ON))
            elif reply.stop != "pause" or last:
                if reply.calls or reply.stop in ("length", "pause"):
                    break
                return "".join(text)
        raise ModelFailed(
            f"{self._client.model} gave no final answer within {self._limits.turns} turns; raise maxTurns, or give it less to do"
        )

    def _turn(self, last: bool) -> ModelReply:
        turns = self.conversation.turns
        if last and self._tools.described:
            turns[-1] = ChatTurn(by="user", parts=(*turns[-1].parts, Text(text=LAST_TURN)))
        request = ModelRequest(
            system=self.conversation.system,
            turns=tuple(turns),
            tools=self._tools.described,
            free=not last,
            schema=self._schema,
        )
        self.meter.turns += 1
        self._reporter = ReplyReporter(self._progress, self.meter)
        reply = self._send(request)
        self._count(reply.usage)
        if reply.stop == "refusal":
            raise ModelFailed(
                f"{self._client.model} refuses to answer{': ' if reply.detail else ''}{reply.detail}",
                kind="refusal",
            )
        if reply.stop == "context":
            raise Endpoint(url="", model=self._client.model).too_long(
                "it stopped because its context is full"
            )
        if reply.parts:
            turns.append(ChatTurn(by="assistant", parts=reply.parts))
        return reply

    def _send(self, request: ModelRequest) -> ModelReply:
        def send() -> ModelReply:
            return self._retries.send(self._client, request, self._reporter.take)

        return send() if self._reports is None else self._reports.report(request, send)

    def _count(self, usage: Usage) -> None:
        self.meter.add(usage)
        self._progress({"usage": self.meter.document()})

    def _count_cut(self, usage: Usage) -> None:
        """Add the usage of a turn that broke off and was billed; the endpoint would have sent its
        output count at the end.
        """
        self._count(replace(usage, output=max(usage.output, self._reporter.reset())))

    def _use(self, reply: ModelReply) -> str | None:
        """Run the tool calls of a turn in order, and return the answer if a tool gives it.

        Arguments that were cut off by the end of the turn get an error of their own.
        """
        results: list[ToolResult] = []
        for call in reply.calls:
            if self._cancel.requested or self._connection.is_over:
                raise ConversationCancelled
            self._progress({**self._tools.shown(call), "usage": self.meter.document()})
            cut_off = reply.stop == "length" and call is reply.calls[-1] and not _is_whole(call)
            if any(result.final for result in results):
                results.append(ToolResult(call=call.id, text=NOT_BEGUN, failed=True))
            elif cut_off:
                results.append(ToolResult(call=call.id, text=CUT_ARGUMENTS, failed=True))
            else:
                results.append(self._tools.use(call, self._left_s()))
        if self._cancel.requested:
            raise ConversationCancelled
        self.conversation.turns.append(ChatTurn(by="user", parts=tuple(results)))
        final = next((result.text for result in results if result.final), None)
        if final is not None:
            self.conversation.turns.append(
                ChatTurn(by="assistant", parts=(Text(text=final or " "),))
            )
        self.ended_by_tool = final is not None
        return final

    def _left_s(self) -> float:
        return self.meter.begin_s + self._limits.seconds - time.monotonic()

    def _wait(self, pause_s: float) -> bool:
        return self._cancel.wait(max(0.0, min(pause_s, self._left_s()))) or self._left_s() <= 0


def _is_whole(call: ToolUse) -> bool:
    try:
        call.parsed()
    except ValueError:
        return False
    return True
