"""Agents of another distribution, which greet the task: a plain class, and one that describes its
kind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from uncaged_bundles.errors import UsageError
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import AgentAnswer, AgentKind, AgentRequest


class PoliteAgent:
    """Settings: word (``Hello`` if absent)."""

    name = "polite"

    def __init__(self, settings: Mapping[str, object]) -> None:
        if unknown := sorted(set(settings) - {"word"}):
            raise UsageError(f"the polite agent has no setting {unknown[0]!r}; it has: word")
        self._word = str(settings.get("word", "Hello"))

    def answer(self, request: AgentRequest) -> AgentAnswer:
        meta = {"status": "greeted", "greeting": f"{self._word}, {request.task}!"}
        return AgentAnswer(
            text=f"With pleasure.\n\n```json\n{json.dumps(meta)}\n```\n", usage={"words": 2}
        )


class CurtAgent(PoliteAgent, AgentKind):
    """Greeter that answers in one word: ``--agent curt:Hi``. Any policy holds: it has no tools."""

    about = "greets in one word"
    plays = ("greeter",)

    @classmethod
    def holds(cls, settings: Mapping[str, object], rights: Rights) -> None:
        del settings, rights

    @classmethod
    def parse(cls, word: str) -> Mapping[str, object]:
        return {"word": word}
