"""Probe of a model: one request of a few tokens over the client that turns use."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.agents import AgentCheck
from uncaged_models.client import ModelRequest
from uncaged_models.connection import open_client
from uncaged_models.conversation import user_turn
from uncaged_models.errors import Busy, ModelFailed, ReplyBroken
from uncaged_models.settings import ModelSettings

from .check import PROMPT

TINY_TOKENS = 64


def ask_model(
    settings: ModelSettings, environment: Mapping[str, str], limit_s: float
) -> AgentCheck:
    """Send one request of a few tokens, which is never repeated."""
    if not settings.options:  # a budget for thinking, say, would have to be smaller than the limit
        settings = replace(settings, max_tokens=TINY_TOKENS)
    ask = ModelRequest(system="", turns=(user_turn(PROMPT),))
    with open_client(settings, environment) as (client, connection):
        begin_s = time.monotonic()
        connection.begin(begin_s + limit_s)
        try:
            reply = client.send(ask, _ignore_piece)
        except (EnvironmentLacks, ReplyBroken, Busy):
            if connection.is_over:
                raise ModelFailed(
                    f"{settings.model} at {settings.url} gave no answer within {limit_s:g} s",
                    kind="timeout",
                ) from None
            raise
    refused = reply.stop == "refusal"
    return AgentCheck(
        level="note" if refused else "ok",
        text=f"{settings.model} at {settings.url} {'refused to say a word' if refused else 'answered'}",
        remedy="ask it for something else to see more" if refused else "",
        seconds=time.monotonic() - begin_s,
        model=settings.model,
        usage={**reply.usage.document(), "turns": 1},
        asked=True,
    )


def _ignore_piece(_piece: str, _is_text: bool) -> None:
    """Drop a piece of the reply: a health check has no followers."""
