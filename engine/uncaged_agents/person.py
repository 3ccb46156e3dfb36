"""People as agents: the thread waits, its worker may end, and `answer` continues it at any time.

The person may work in the thread's worktree meanwhile; changes there are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from uncaged_engine.door.agents import AgentAnswer, AgentCheck, AgentKind, AgentRequest, AgentWaits
from uncaged_engine.services.agent_settings import known


class PersonAgent(AgentKind):
    """Takes no settings."""

    name = "person"
    about = "you, with `answer`"

    def __init__(self, settings: Mapping[str, object]) -> None:
        known(settings, kind=self.name)

    def check(self, request: AgentRequest) -> AgentCheck:
        del request
        return AgentCheck(level="ok", text="you, with `uncaged-workflow answer`")

    def answer(self, request: AgentRequest) -> AgentAnswer:
        if request.reply is None or request.repair is not None:
            raise AgentWaits(question(request))
        if isinstance(request.reply, str):
            return AgentAnswer(text=request.reply)
        return AgentAnswer(
            text=f"```json\n{json.dumps(request.reply, ensure_ascii=False, indent=2)}\n```"
        )


def question(request: AgentRequest) -> dict[str, object]:
    """Return the details of the wait, with the problem of the last answer if it could not be
    used.
    """
    asked: dict[str, object] = {
        "question": f"{request.role.name}: {request.role.description}",
        "answer": "role",
        "prompt": request.prompt,
    }
    asked["fields"] = dict(request.role.schema)
    if request.worktree is not None:
        asked["worktree"] = str(request.worktree)
    if request.repair is not None:
        asked["problem"] = request.repair.problem
    return asked
