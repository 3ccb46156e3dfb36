"""Targets of health checks: the agents of the config, those with the person's consent, the default,
and models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_engine.door.agents import AgentCheck, AgentKind, AgentRequest
from uncaged_engine.services.settings import Config
from uncaged_models.settings import WIRES, Wire, read_settings, with_key

from ..choice import agent_named
from ..choose import default_agent
from ..kinds import factory_of
from .check import CheckContext, Probe, check_agent
from .model import ask_model

IRRELEVANT_SETTINGS = frozenset({"maxTurns", "timeoutSeconds", "maxTokens", "structured"})
"""Settings of models that make no difference to whether they can be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTarget:
    """Agent or model to check. where: the place of its settings, for the remedy. problem: why its
    kind is not known.
    """

    name: str
    use: str
    where: str
    settings: Mapping[str, object]
    probe: Probe
    problem: str = ""

    @property
    def identity(self) -> str:
        """Return a key that two names of the same agent or model share."""
        irrelevant = IRRELEVANT_SETTINGS if self.use in WIRES else frozenset()
        settings = {name: value for name, value in self.settings.items() if name not in irrelevant}
        return json.dumps([self.use, settings], sort_keys=True, default=str)


def find_missing(
    context: CheckContext, directory: Path
) -> Iterator[tuple[CheckTarget, AgentCheck]]:
    """Yield the targets that lack a key, a program or a file. No request is sent and no process
    started.
    """
    looked = (
        replace(target, probe=probe_of(target.use, live=False))
        for target in targets(context, directory)
    )
    return (
        (target, found) for target, found in check_each(looked, context) if found.level == "problem"
    )


def check_all(context: CheckContext, directory: Path) -> Iterator[tuple[CheckTarget, AgentCheck]]:
    """Check every target.

    Args:
        directory: where relative paths in names of agents start.
    """
    return check_each(targets(context, directory), context)


def check_each(
    chosen: Iterable[CheckTarget], context: CheckContext
) -> Iterator[tuple[CheckTarget, AgentCheck]]:
    """Check each target once; a second name of the same one repeats the result."""
    checked: dict[str, tuple[str, AgentCheck]] = {}
    for target in chosen:
        if target.problem:
            yield (
                target,
                AgentCheck(level="problem", text=target.problem, remedy=f"fix {target.where}"),
            )
            continue
        if target.identity in checked:
            name, found = checked[target.identity]
            yield (
                target,
                replace(
                    found,
                    text=f"the same as {name}: {found.text}",
                    seconds=0.0,
                    usage={},
                    asked=False,
                ),
            )
            continue
        found = check_agent(target.probe, target.settings, context, target.where)
        checked[target.identity] = target.name, found
        yield target, found


def targets(context: CheckContext, directory: Path) -> Iterator[CheckTarget]:
    """Yield the agents that the config defines, names or has a consent for, the default, and the
    models of the llm effect.
    """
    config = context.config
    seen: set[str] = set()
    for name, where in (
        *((name, f"agents.{name} in config.yaml") for name in config.agents),
        *named_in(config),
        *consented_programs(context),
    ):
        if name not in seen:
            seen.add(name)
            yield agent_target(name, where, config, directory)
    try:
        default = default_agent(config, context.environment, directory)
    except UncagedError:
        return  # it was named, so it is a target already
    if default.name not in seen:
        settings = with_key(default.use, default.settings)
        yield CheckTarget(
            name=default.name,
            use=default.use,
            where="the environment",
            settings=settings,
            probe=probe_of(default.use),
        )
    for name, entry in config.models.items():
        wire = next(wire for wire in WIRES if wire == entry.use)
        where = f"models.{name} in config.yaml"
        yield CheckTarget(
            name=name,
            use=wire,
            where=where,
            settings=with_key(wire, entry.settings),
            probe=model_probe(wire),
        )


def agent_target(name: str, where: str, config: Config, directory: Path) -> CheckTarget:
    try:
        chosen = agent_named(name, config, where, directory)
    except UncagedError as exc:
        return CheckTarget(
            name=name, use="", where=where, settings={}, probe=probe_of(""), problem=str(exc)
        )
    return CheckTarget(
        name=name,
        use=chosen.use,
        where=where,
        settings=with_key(chosen.use, chosen.settings),
        probe=probe_of(chosen.use),
    )


def named_in(config: Config) -> Iterator[tuple[str, str]]:
    """Yield every agent that the config names, with the place of the name."""
    if config.agent is not None:
        yield config.agent, "agent in config.yaml"
    for role, name in config.roles.items():
        yield name, f"roles.{role} in config.yaml"
    for flow, settings in config.flows.items():
        if settings.agent is not None:
            yield settings.agent, f"flows.{flow}.agent in config.yaml"
        for role, name in settings.roles.items():
            yield name, f"flows.{flow}.roles.{role} in config.yaml"


def consented_programs(context: CheckContext) -> Iterator[tuple[str, str]]:
    """Yield the installed coding programs that have the user's consent."""
    from ..program.table import table

    path = context.environment.get("PATH", "")
    for name in context.config.consent:
        row = table().get(name)
        if row is not None and row.program_on(path) is not None:
            yield name, "consent in config.yaml"


def probe_of(use: str, *, live: bool = True) -> Probe:
    """Return the probe of agents of a kind; one that is not *live* takes no turn and starts
    nothing.
    """

    def probe(settings: Mapping[str, object], request: AgentRequest) -> AgentCheck:
        agent = factory_of(use)(settings)
        found = None
        if isinstance(agent, AgentKind):
            found = agent.check_live(request) if live else agent.check(request)
        text = f"agents of the kind {use!r} are not asked: nothing is known of how to try one"
        return found or AgentCheck(level="note", text=text, remedy="run a flow with it")

    return probe


def model_probe(wire: Wire) -> Probe:
    """Return the probe of a model of the llm effect."""
    return lambda settings, request: ask_model(
        read_settings(wire, settings, request.environment), request.environment, request.timeout_s
    )
