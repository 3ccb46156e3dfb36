"""An agent of another distribution: it greets the task, with the word from its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping

from uncaged_bundles.errors import UsageError
from uncaged_engine.door.agents import AgentAnswer, AgentRequest


class PoliteAgent:
    """Settings: word (``Hello`` if absent)."""

    name = "polite"

    def __init__(self, settings: Mapping[str, object]) -> None:
        if unknown := sorted(set(settings) - {"word"}):
            raise UsageError(f"the polite agent has no setting {unknown[0]!r}; it has: word")
        self._word = str(settings.get("word", "Hello"))

    def answer(self, request: AgentRequest) -> AgentAnswer:
        meta = {"status": "greeted", "greeting": f"{self._word}, {request.task}!"}
        return AgentAnswer(text=f"With pleasure.\n\n```json\n{json.dumps(meta)}\n```\n", usage={"words": 2})
