"""Detection of an agent on this machine, where a person chose none: by a key, by a coding program
with the person's consent, by a local model server; else a built-in agent without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.secrets import source_of
from uncaged_engine.services.settings import NOTHING, Config
from uncaged_models.settings import KEY_VARIABLES

from .choice import Choice
from .kinds import is_kind, kind_of

BUILT_IN = "repair"
"""The kind of agent that answers if none is chosen."""
BUILT_IN_FORM = "form"
"""The kind that answers instead where it plays all the roles."""


def detected_agent(
    config: Config, environment: Mapping[str, str], roles: Collection[str] = ()
) -> Choice:
    """Return the first agent in ORDER that this machine has, else the built-in one for *roles*."""
    found = next(
        (choice for look in ORDER if (choice := look(config, environment)) is not None), None
    )
    return found if found is not None else built_in(config, environment, roles)


def by_key(config: Config, environment: Mapping[str, str]) -> Choice | None:
    """Return the model whose key is in the environment, or in the key store under the same name."""
    for wire, variable in KEY_VARIABLES.items():
        if environment.get(variable):
            return Choice(name=wire, use=wire, settings=NOTHING, reason=f"{variable} is set")
    for wire, variable in KEY_VARIABLES.items():
        source = source_of(variable, config.keys, environment)
        if source is not None and source.file is not None:
            return Choice(
                name=wire, use=wire, settings=NOTHING, reason=f"{variable} is kept in the store"
            )
    return None


def by_program(config: Config, environment: Mapping[str, str]) -> Choice | None:
    """Return the coding program on PATH that has the person's consent."""
    if not config.consent:
        return None
    from .consent import consented_program

    row = consented_program(config, environment)
    if row is None:
        return None
    reason = f"{row.title} is on PATH, and you said yes to it (config.yaml: consent)"
    return Choice(name=row.name, use=row.use, settings={"row": row.name}, reason=reason)


def by_local_server(config: Config, environment: Mapping[str, str]) -> Choice | None:  # noqa: ARG001 - as all in ORDER
    """Return the model of a server on loopback. It costs nothing, and nothing leaves the
    machine.
    """
    from .local_server import PORTS, find_server

    server = find_server()
    if server is None:
        return None
    settings = {"baseUrl": server.url, "model": server.model}
    reason = f"a model server ({PORTS[server.port]}?) answers on {server.url} with {server.model!r}"
    return Choice(name="openai", use="openai", settings=settings, reason=reason)


def built_in(config: Config, environment: Mapping[str, str], roles: Collection[str] = ()) -> Choice:
    """Return the built-in agent for *roles*, the repair if none plays them. Its reason names a
    program that could be used instead, unless the person refused it.
    """
    from .consent import undecided_program

    if _plays_form(roles):
        use = BUILT_IN_FORM
    elif is_kind(BUILT_IN):
        use = BUILT_IN
    else:
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
    reason = f"no agent is configured, so the built-in {use} answers{hint}"
    return Choice(name=use, use=use, settings=NOTHING, reason=reason)


def _plays_form(roles: Collection[str]) -> bool:
    if not roles or not is_kind(BUILT_IN_FORM):
        return False
    plays = kind_of(BUILT_IN_FORM).plays
    return plays is not None and all(role in plays for role in roles)


ORDER: tuple[Callable[[Config, Mapping[str, str]], Choice | None], ...] = (
    by_key,
    by_program,
    by_local_server,
)
"""Where an agent is looked for if none is chosen; the built-in one comes last."""
