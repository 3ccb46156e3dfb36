"""Each kind of agent is tried in the way that costs least: a model says a word, a session is opened, a file is read, a program is found."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Timer
from typing import cast

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.agents import AgentRequest
from uncaged_engine.services import agent_settings as check
from uncaged_models.client import Ask
from uncaged_models.conversation import said
from uncaged_models.errors import Busy, Cut, ModelFailed
from uncaged_models.opening import opened
from uncaged_models.settings import ModelSettings, Wire, read_settings

from ..acp.agent import AcpAgent
from ..command import find_program
from ..kinds import factory_of
from ..program.agent import KIND as PROGRAM
from ..program.agent import ProgramAgent
from ..program.table import row_for
from ..scripted import ScriptedAgent, read_script
from .trial import PROMPT, Finding, Try

TINY_TOKENS = 64


def model_agent(wire: Wire) -> Try:
    """The way to try a model that plays roles."""

    def attempt(settings: Mapping[str, object], request: AgentRequest) -> Finding:
        factory_of(wire)(settings)
        limit_s = min(request.timeout_s, check.seconds(settings, "timeoutSeconds", request.timeout_s, kind=wire))
        return ask_model(read_settings(wire, settings, request.environment), request.environment, limit_s)

    return attempt


def model(wire: Wire) -> Try:
    """The way to try a model that the llm effect asks."""
    return lambda settings, request: ask_model(read_settings(wire, settings, request.environment), request.environment, request.timeout_s)


def ask_model(settings: ModelSettings, environment: Mapping[str, str], limit_s: float) -> Finding:
    """One request of a few tokens over the client that turns use; not repeated, whatever becomes of it."""
    if not settings.options:  # a budget for thinking, say, would have to be smaller than the limit
        settings = replace(settings, max_tokens=TINY_TOKENS)
    ask = Ask(system="", turns=(said(PROMPT),))
    with opened(settings, environment) as (client, line):
        timer = Timer(limit_s, line.cut)
        timer.daemon = True
        timer.start()
        begin_s = time.monotonic()
        try:
            reply = client.send(ask, _unheard)
        except (EnvironmentLacks, Cut, Busy):
            if line.is_cut:
                raise ModelFailed(f"{settings.model} at {settings.url} gave no answer within {limit_s:g} s", kind="timeout") from None
            raise
        finally:
            timer.cancel()
    said_no = reply.stop == "refusal"
    return Finding(
        level="note" if said_no else "ok",
        text=f"{settings.model} at {settings.url} {'refused to say a word' if said_no else 'answered'}",
        remedy="ask it for something else to see more" if said_no else "",
        seconds=time.monotonic() - begin_s,
        model=settings.model,
        usage={**reply.usage.document(), "turns": 1},
        asked=True,
    )


def try_acp(settings: Mapping[str, object], request: AgentRequest) -> Finding:
    """A session is opened and nothing is asked, unless only an answer tells whether somebody is logged in."""
    agent = AcpAgent(settings)
    remarks: list[str] = []
    request = replace(request, remark=remarks.append)
    if agent.login_shows == "prompt":
        answer = agent.answer(request)
        return Finding(level="ok", text=f"{agent.title} answered", usage=answer.usage or {}, asked=True)
    met = agent.greet(request)
    return Finding(level="ok", text=f"{agent.title}{f' ({met.agent})' if met.agent else ''} opened a session", model=met.model)


def try_program(settings: Mapping[str, object], request: AgentRequest) -> Finding:
    answer = ProgramAgent(settings).answer(request)
    return Finding(level="ok", text=f"{row_for(settings, PROGRAM).title} answered", usage=answer.usage or {}, asked=True)


def find_only(use: str, settings: Mapping[str, object], request: AgentRequest) -> Finding:
    """Whether the program of an agent is there; what one of config's own would do with a question is not known."""
    factory_of(use)(settings)
    environment = {**request.environment, **check.variables(settings, "env", kind=use)}
    if "row" in settings:
        program = row_for(settings, use).argv(environment.get("PATH", ""), {})[0]
    else:
        program = find_program(cast("list[str]", settings["argv"])[0], environment)
    return Finding(level="ok", text=f"{program} is there")


def try_scripted(settings: Mapping[str, object], request: AgentRequest) -> Finding:  # noqa: ARG001 - as all in TRIED
    ScriptedAgent(settings)
    script = read_script(Path(str(settings["file"])))
    count = sum(map(len, script.values())) if isinstance(script, dict) else len(script)
    return Finding(level="ok", text=f"{settings['file']} has {count} answer{'' if count == 1 else 's'}")


def try_repair(settings: Mapping[str, object], request: AgentRequest) -> Finding:  # noqa: ARG001 - as all in TRIED
    factory_of("repair")(settings)
    return Finding(level="ok", text="built in: no model, no key; it works in the sandbox")


def try_person(settings: Mapping[str, object], request: AgentRequest) -> Finding:  # noqa: ARG001 - as all in TRIED
    factory_of("person")(settings)
    return Finding(level="ok", text="you, with `uncaged-workflow answer`")


TRIED: Mapping[str, Try] = {
    "anthropic": model_agent("anthropic"),
    "openai": model_agent("openai"),
    "acp": try_acp,
    "program": try_program,
    "command": partial(find_only, "command"),
    "scripted": try_scripted,
    "repair": try_repair,
    "person": try_person,
}


def try_for(use: str) -> Try:
    """The way to try agents of a kind; those of other distributions are made, and not asked."""
    return TRIED.get(use) or (lambda settings, _request: made(use, settings))


def look_for(use: str) -> Try:
    """The way to see without a turn, and without starting anything, what an agent lacks; its secrets are there already."""
    return LOOKED.get(use) or (lambda settings, _request: made(use, settings))


LOOKED: Mapping[str, Try] = {
    "acp": partial(find_only, "acp"),
    "program": partial(find_only, "program"),
    "command": partial(find_only, "command"),
    "scripted": try_scripted,
}


def made(use: str, settings: Mapping[str, object]) -> Finding:
    factory_of(use)(settings)
    return Finding(
        level="note", text=f"agents of the kind {use!r} are not asked: nothing is known of how to try one", remedy="run a flow with it"
    )


def _unheard(_piece: str, _is_text: bool) -> None:
    """Nobody follows."""
