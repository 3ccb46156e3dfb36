"""Benchmark agent: answers at once, or after an idle wait, always with a valid block."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_engine.door.agents import AgentAnswer, AgentFailed, AgentRequest

BLOCK = '\n\n```json\n{"status": "done"}\n```\n'


class BenchAgent:
    """Settings: characters (of an answer), seconds (before it), calls (of tools, in its trace)."""

    name = "bench"

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._text = "All is well so far. " * (int(str(settings["characters"])) // 20) + BLOCK
        self._wait_s = float(str(settings["seconds"]))
        self._calls = int(str(settings.get("calls", 0)))

    def answer(self, request: AgentRequest) -> AgentAnswer:
        if self._wait_s and request.cancel.wait(self._wait_s):
            raise AgentFailed("the agent was stopped")
        for number in range(self._calls):
            request.trace.add("read", {"path": f"{request.key}/{number}"}, self._text)
        return AgentAnswer(
            text=self._text,
            usage={"inputTokens": len(request.prompt) // 4, "outputTokens": len(self._text) // 4},
        )
