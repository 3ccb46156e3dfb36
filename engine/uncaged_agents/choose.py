"""Choice of the agent for each role, made once before the thread starts and recorded with its
reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.errors import EnvironmentLacks, NotFoundError
from uncaged_bundles.rights import ALL_TOOLS, Rights
from uncaged_engine.services import keys
from uncaged_engine.services.settings import NOTHING, Config, FlowSettings
from uncaged_models.settings import KEY_VARIABLES

from .kinds import factory_of, is_kind, kind_of, kinds

if TYPE_CHECKING:
    from .program.table import ProgramRow

BUILT_IN = "repair"
"""The kind of agent that answers if none is chosen."""
DEFAULT = ""
"""The key of the agent for all roles among those that a person asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Chosen agent. use: its kind. settings: its own, secrets still as ``secret:NAME``. reason: why
    this one.
    """

    name: str
    use: str
    settings: Mapping[str, object]
    reason: str

    def is_same(self, other: Choice | None) -> bool:
        """Return whether it is the same agent, for whatever reason it was chosen."""
        return other is not None and (self.name, self.settings) == (other.name, other.settings)

    def recorded(self, rights: Rights = ALL_TOOLS) -> dict[str, object]:
        fields: dict[str, object] = {
            "name": self.name,
            "use": self.use,
            "settings": dict(self.settings),
            "reason": self.reason,
        }
        limits = kind_of(self.use).holds(self.settings, rights) if rights.is_narrowed else None
        return fields if limits is None else {**fields, "limits": limits}


def choose_agents(
    config: Config,
    *,
    flow: str,
    roles: Iterable[str],
    asked: Mapping[str, str],
    environment: Mapping[str, str],
    directory: Path,
    rights: Rights = ALL_TOOLS,
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
    Raises:
        NotFoundError: no such agent, or a role that the flow does not have.
        UsageError: settings that the agent does not understand.
        EnvironmentLacks: no agent is chosen, and the built-in one does not play these roles.
    """
    names = tuple(roles)
    expect_roles(flow, names, asked)
    configured = {
        role: configured_name(config, flow=flow, role=role, asked=asked) for role in names
    }
    unnamed = [role for role, (name, _) in configured.items() if name is None]
    general, reason = configured_name(config, flow=flow, role=None, asked=asked)
    default = agent_named(general, config, reason, directory) if general is not None else None
    if default is None and unnamed:
        default = detected_agent(config, environment)
    chosen = {
        role: agent_named(name, config, reason, directory)
        for role, (name, reason) in configured.items()
        if name is not None
    }
    others = {role: choice for role, choice in chosen.items() if not choice.is_same(default)}
    if default is not None:
        expect_plays(flow, default.use, unnamed)
    answering = default if len(others) < len(names) else None
    # settings that a person gave are checked, even if no role uses them
    checked = default if DEFAULT in asked else answering
    for choice in (*((checked,) if checked is not None else ()), *others.values()):
        factory_of(choice.use)(choice.settings)  # raises now instead of in the thread
    if not names:
        return {}
    return {
        **({"default": answering.recorded(rights)} if answering is not None else {}),
        "roles": {role: choice.recorded(rights) for role, choice in others.items()},
    }


def expect_roles(flow: str, roles: Collection[str], asked: Iterable[str]) -> None:
    """Refuse an agent for a role that the flow does not have."""
    wrong = unknown_role(roles, asked)
    if wrong is not None:
        near = get_close_matches(wrong, roles, n=3) or roles
        raise NotFoundError(
            f"the flow {flow!r} has no role {wrong!r} (its roles: {', '.join(near) or 'none'})"
        )


def expect_plays(flow: str, use: str, roles: Iterable[str]) -> None:
    """Refuse to start a thread in which an agent would have to play a role that its kind does not
    play.
    """
    plays = kind_of(use).plays
    lacking = [] if plays is None else [role for role in roles if role not in plays]
    if plays is not None and lacking:
        raise EnvironmentLacks(
            f"no agent is configured that could answer for {', '.join(map(repr, lacking))} in {flow!r}; the built-in {use} plays only"
            f" {', '.join(plays)}. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name one with --agent (`uncaged-workflow agents` lists them)"
        )


def default_agent(config: Config, environment: Mapping[str, str], directory: Path) -> Choice:
    """Return the agent of a role that nothing names one for: that of the config, else the first
    that this machine has.
    """
    return (
        agent_named(config.agent, config, "config.yaml: agent", directory)
        if config.agent is not None
        else detected_agent(config, environment)
    )


def configured_name(
    config: Config, *, flow: str, role: str | None, asked: Mapping[str, str]
) -> tuple[str | None, str]:
    """Return the name that is chosen for *role*, and where; None if there is none."""
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
    """Return the coding program on PATH that needs a person's consent; None when nothing depends on
    it.

    Nothing does when the run will be refused for a role that the flow does not have.
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


def detected_agent(config: Config, environment: Mapping[str, str]) -> Choice:
    """Return the agent of a machine without a chosen one: the first that there is."""
    found = next(
        (choice for look in ORDER if (choice := look(config, environment)) is not None), None
    )
    return found if found is not None else built_in(config, environment)


def by_key(config: Config, environment: Mapping[str, str]) -> Choice | None:
    """Return the model whose key is in the environment, or in the store under the same name."""
    for wire, variable in KEY_VARIABLES.items():
        if environment.get(variable):
            return Choice(name=wire, use=wire, settings=NOTHING, reason=f"{variable} is set")
    for wire, variable in KEY_VARIABLES.items():
        source = keys.source_of(variable, config.keys, environment)
        if source is not None and source.file is not None:
            return Choice(
                name=wire, use=wire, settings=NOTHING, reason=f"{variable} is kept in the store"
            )
    return None


def by_program(config: Config, environment: Mapping[str, str]) -> Choice | None:
    """Return the coding program on PATH that has the user's consent."""
    if not config.consent:
        return None
    from .consent import consented_program

    row = consented_program(config, environment)
    if row is None:
        return None
    reason = f"{row.title} is on PATH, and you said yes to it (config.yaml: consent)"
    return Choice(name=row.name, use=row.use, settings={"row": row.name}, reason=reason)


def by_local_server(config: Config, environment: Mapping[str, str]) -> Choice | None:  # noqa: ARG001 - as all in ORDER
    """Return the model server on loopback, which costs nothing; nothing leaves the machine."""
    from .local_server import PORTS, find_server

    server = find_server()
    if server is None:
        return None
    settings = {"baseUrl": server.url, "model": server.model}
    reason = f"a model server ({PORTS[server.port]}?) answers on {server.url} with {server.model!r}"
    return Choice(name="openai", use="openai", settings=settings, reason=reason)


def built_in(config: Config, environment: Mapping[str, str]) -> Choice:
    """Return the built-in repair; its reason names a program that could be used, unless the person
    refused it.
    """
    from .consent import undecided_program

    if not is_kind(BUILT_IN):
        raise EnvironmentLacks(
            "no agent is configured, and the built-in repair is not installed",
            remedy="set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name one with --agent (`uncaged-workflow agents` lists them)",
        )
    found = undecided_program(config, environment)
    hint = (
        f"; {found.name!r} is on PATH: to use it, run with --agent {found.name}, or name it in config.yaml"
        if found
        else ""
    )
    return Choice(
        name=BUILT_IN,
        use=BUILT_IN,
        settings=NOTHING,
        reason=f"no agent is configured, so the built-in repair answers{hint}",
    )


ORDER: tuple[Callable[[Config, Mapping[str, str]], Choice | None], ...] = (
    by_key,
    by_program,
    by_local_server,
)
"""Where an agent is looked for if none is chosen; the built-in repair comes last."""


def agent_named(name: str, config: Config, reason: str, directory: Path) -> Choice:
    """Return the agent that *name* means: one of the config, a kind by its name, a known coding
    agent, or ``KIND:…`` in one word.
    """
    if name in config.agents:
        return Choice(
            name=name,
            use=config.agents[name].use,
            settings=configured_settings(name, config, directory),
            reason=reason,
        )
    kind, colon, rest = name.partition(":")
    if colon and is_kind(kind) and (settings := kind_of(kind).parse(rest)) is not None:
        return Choice(
            name=kind, use=kind, settings=with_absolute_paths(settings, directory), reason=reason
        )
    if is_kind(name):
        return Choice(name=name, use=name, settings=NOTHING, reason=reason)
    from .program.table import table

    row = table().get(name)
    if row is None:
        known = sorted({*config.agents, *kinds(), *table()})
        near = get_close_matches(name, known, n=3) or known
        raise NotFoundError(
            f"there is no agent {name!r} (known: {', '.join(near)}); `uncaged-workflow agents` lists all, config.yaml may define more"
        )
    return Choice(name=name, use=row.use, settings={"row": name}, reason=reason)


def configured_settings(name: str, config: Config, directory: Path) -> dict[str, object]:
    """Return the settings that the config has for an agent. Relative paths in them start at its
    file, or at *directory* if it has none.
    """
    start = config.path.parent if config.path is not None else directory
    return with_absolute_paths(config.agents[name].settings, start)


def with_absolute_paths(settings: Mapping[str, object], directory: Path) -> dict[str, object]:
    """Make paths absolute: the worker runs elsewhere. A program without a slash is looked up on
    PATH later.
    """
    result = dict(settings)
    file, argv = result.get("file"), result.get("argv")
    if isinstance(file, str):
        result["file"] = str(directory / Path(file).expanduser())
    if isinstance(argv, list) and argv and isinstance(argv[0], str) and "/" in argv[0]:
        result["argv"] = [str(directory / Path(argv[0]).expanduser()), *argv[1:]]
    return result
