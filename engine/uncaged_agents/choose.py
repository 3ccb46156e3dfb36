"""Choice of the agent for each role, made once before the thread starts and recorded with its
reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from uncaged_bundles.errors import EnvironmentLacks, NotFoundError, UsageError
from uncaged_bundles.rights import ALL_TOOLS, Rights
from uncaged_engine.services.settings import Config, FlowSettings

from .choice import Choice, agent_named, with_options
from .detection import by_key, detected_agent
from .kinds import factory_of, kind_of

if TYPE_CHECKING:
    from .program.table import ProgramRow

NOTHING_GIVEN: Mapping[str, Mapping[str, object]] = MappingProxyType({})
DEFAULT = ""
"""The key of the agent for all roles among those that a person asked for."""


def choose_agents(
    config: Config,
    *,
    flow: str,
    roles: Iterable[str],
    asked: Mapping[str, str],
    environment: Mapping[str, str],
    directory: Path,
    rights: Rights = ALL_TOOLS,
    options: Mapping[str, Mapping[str, object]] = NOTHING_GIVEN,
) -> dict[str, object]:
    """Return the ``agents`` of a start record: the default, and each role that another agent
    answers for.

    An agent that no role would ask is neither looked for nor recorded.

    Args:
        roles: those that the policy lets the bundle ask an agent for.
        asked: the agents named for this run: role to agent, the empty key for all roles.
        directory: where relative paths in it start.
        rights: what the flow's policy allows its roles; the record says how far each agent can be
            held to it.
        options: settings for this thread alone, as *asked* is: those of a role go before those of
            all roles.
    Raises:
        NotFoundError: no such agent, or a role that the flow does not have.
        UsageError: settings that the agent does not understand.
        EnvironmentLacks: no agent is chosen, and the built-in one does not play these roles.
    """
    names = tuple(roles)
    expect_roles(flow, names, {*asked, *options})
    configured = {
        role: configured_name(config, flow=flow, role=role, asked=asked) for role in names
    }
    unnamed = [role for role, (name, _) in configured.items() if name is None]
    plain = _agent_of_all(config, flow, asked, environment, directory, unnamed=unnamed)
    if plain is None and DEFAULT in options:
        raise UsageError(
            "--agent-option KEY=VALUE is for the agent of all roles, and each role has one of its own; use ROLE.KEY=VALUE"
        )
    default = (
        with_options(plain, options.get(DEFAULT, {}), directory) if plain is not None else None
    )
    named = {
        role: agent_named(name, config, reason, directory)
        for role, (name, reason) in configured.items()
        if name is not None
    }
    chosen = _with_own_options(names, named, plain, options, directory)
    others = {role: choice for role, choice in chosen.items() if not choice.is_same(default)}
    if default is not None:
        expect_plays(flow, default.use, unnamed)
    answering = default if len(others) < len(names) else None
    # settings that a person gave are checked, even if no role uses them
    checked = default if DEFAULT in {*asked, *options} else answering
    for choice in (*((checked,) if checked is not None else ()), *others.values()):
        factory_of(choice.use)(choice.settings)  # raises now instead of in the thread
    return _recorded(answering, others, rights) if names else {}


def _recorded(
    default: Choice | None, others: Mapping[str, Choice], rights: Rights
) -> dict[str, object]:
    """Return the choices as the start record has them."""
    return {
        **({"default": default.recorded(rights)} if default is not None else {}),
        "roles": {role: choice.recorded(rights) for role, choice in others.items()},
    }


def _agent_of_all(
    config: Config,
    flow: str,
    asked: Mapping[str, str],
    environment: Mapping[str, str],
    directory: Path,
    *,
    unnamed: Collection[str],
) -> Choice | None:
    """Return the agent of all roles: the one that is named, else, for *unnamed* roles, the first
    that this machine has.
    """
    name, reason = configured_name(config, flow=flow, role=None, asked=asked)
    if name is not None:
        return agent_named(name, config, reason, directory)
    return detected_agent(config, environment, unnamed) if unnamed else None


def _with_own_options(
    roles: Iterable[str],
    named: Mapping[str, Choice],
    plain: Choice | None,
    options: Mapping[str, Mapping[str, object]],
    directory: Path,
) -> dict[str, Choice]:
    """Return the agent of each role that has an agent or settings of its own. The settings of all
    roles hold for a role whose agent is *plain*, that of all roles.
    """
    chosen = dict(named)
    for role in roles:
        choice = chosen.get(role, plain)
        if choice is not None and (role in chosen or role in options):
            general = options.get(DEFAULT, {}) if choice.is_same(plain) else {}
            chosen[role] = with_options(choice, {**general, **options.get(role, {})}, directory)
    return chosen


def expect_roles(flow: str, roles: Collection[str], asked: Iterable[str]) -> None:
    """Refuse an agent for a role that the flow does not have."""
    wrong = unknown_role(roles, asked)
    if wrong is not None:
        near = get_close_matches(wrong, roles, n=3) or roles
        raise NotFoundError(
            f"the flow {flow!r} has no role {wrong!r} (its roles: {', '.join(near) or 'none'})"
        )


def expect_plays(flow: str, use: str, roles: Iterable[str]) -> None:
    """Refuse to start a thread if the agent's kind does not play one of *roles*."""
    plays = kind_of(use).plays
    lacking = [] if plays is None else [role for role in roles if role not in plays]
    if plays is not None and lacking:
        raise EnvironmentLacks(
            f"no agent is configured that could answer for {', '.join(map(repr, lacking))} in {flow!r}; the built-in {use} plays only"
            f" {', '.join(plays)}. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name one with --agent (`uncaged-workflow agents` lists them)"
        )


def default_agent(config: Config, environment: Mapping[str, str], directory: Path) -> Choice:
    """Return the agent of a role that is named nowhere: that of the config, else the first that
    this machine has.
    """
    return (
        agent_named(config.agent, config, "config.yaml: agent", directory)
        if config.agent is not None
        else detected_agent(config, environment)
    )


def configured_name(
    config: Config, *, flow: str, role: str | None, asked: Mapping[str, str]
) -> tuple[str | None, str]:
    """Return the agent's name for *role* with the place that names it; None and "" if none does.

    role: None for all roles.
    """
    settings = config.flows.get(flow, FlowSettings())
    chosen_names: list[tuple[str | None, str]] = [(asked.get(DEFAULT), "asked for")]
    if role is not None:
        chosen_names.insert(0, (asked.get(role), f"asked for, for {role!r}"))
        chosen_names.append((settings.roles.get(role), f"config.yaml: flows.{flow}.roles.{role}"))
    chosen_names.append((settings.agent, f"config.yaml: flows.{flow}.agent"))
    if role is not None:
        chosen_names.append((config.roles.get(role), f"config.yaml: roles.{role}"))
    chosen_names.append((config.agent, "config.yaml: agent"))
    return next(((name, reason) for name, reason in chosen_names if name is not None), (None, ""))


def unknown_role(roles: Collection[str], asked: Iterable[str]) -> str | None:
    """Return the first role that an agent was asked for and the flow lacks."""
    return next((role for role in asked if role != DEFAULT and role not in roles), None)


def program_needing_consent(
    config: Config,
    *,
    flow: str,
    roles: Iterable[str],
    asked: Mapping[str, str],
    environment: Mapping[str, str],
) -> ProgramRow | None:
    """Return the coding program on PATH that would answer if the person consented; None if no role
    depends on it.

    A run that will be refused for an unknown role depends on none.
    """
    roles = tuple(roles)
    if unknown_role(roles, asked) is not None:
        return None
    if (
        all(
            configured_name(config, flow=flow, role=role, asked=asked)[0] is not None
            for role in roles
        )
        or by_key(config, environment) is not None
    ):
        return None
    from .consent import undecided_program

    return undecided_program(config, environment)
