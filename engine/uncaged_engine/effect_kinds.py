"""Every kind of effect has one handler, found by the kind's name: ours in one literal table, others' through entry points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import cast

from . import plugins
from .door.effects import Handler

__all__ = ["BUILT_IN", "GROUP", "handler_for", "kinds"]

GROUP = "uncaged_workflow.effects"

BUILT_IN = {
    "all": "uncaged_effects.all:AllHandler",
    "ask": "uncaged_effects.ask:AskHandler",
    "fetch": "uncaged_effects.fetch:FetchHandler",
    "flow": "uncaged_effects.flow:FlowHandler",
    "http": "uncaged_effects.http:HttpHandler",
    "llm": "uncaged_effects.llm:LlmHandler",
    "now": "uncaged_effects.now:NowHandler",
    "null": "uncaged_effects.null:NullHandler",
    "role": "uncaged_agents.role:RoleHandler",
    "script": "uncaged_effects.script:ScriptHandler",
    "search": "uncaged_effects.search:SearchHandler",
    "sleep": "uncaged_effects.sleep:SleepHandler",
}


@cache
def handler_for(kind: str) -> Handler:
    """Return the one handler of *kind*; NotFoundError names the nearest kinds."""
    factory = cast("type[Handler]", plugins.find(kind, built_in=BUILT_IN, group=GROUP))
    return factory()


def outcome_schema(kind: str, body: object) -> Mapping[str, object]:
    """Return the JSON Schema of what performing an effect answers; empty for a kind that does not say."""
    return handler_for(kind).outcome_schema(body)


def kinds() -> tuple[str, ...]:
    """Return all kinds that can be performed here."""
    return plugins.names(built_in=BUILT_IN, group=GROUP)
