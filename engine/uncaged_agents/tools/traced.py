"""Tools whose calls are kept in the trace of a role step."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from uncaged_engine.door.traces import AgentTrace
from uncaged_models.client import ToolDescription
from uncaged_models.conversation import ToolResult, ToolUse
from uncaged_models.loop import Tools

__all__ = ["TracedTools"]


class TracedTools:
    """A set of tools that adds each call to a trace."""

    def __init__(self, tools: Tools, trace: AgentTrace) -> None:
        self._tools = tools
        self._trace = trace

    @property
    def described(self) -> Sequence[ToolDescription]:
        return self._tools.described

    def use(self, call: ToolUse, left_s: float) -> ToolResult:
        """Perform a call; one that raises is in the trace, too."""
        begin_s = time.monotonic()
        result: ToolResult | None = None
        try:
            result = self._tools.use(call, left_s)
        finally:
            self._trace.add(
                call.name,
                _arguments(call),
                None if result is None else result.text,
                failed=result is None or result.failed,
                duration_ms=int((time.monotonic() - begin_s) * 1000),
            )
        return result

    def shown(self, call: ToolUse) -> Mapping[str, object]:
        return self._tools.shown(call)


def _arguments(call: ToolUse) -> object:
    try:
        return call.parsed()
    except ValueError:
        return call.arguments
