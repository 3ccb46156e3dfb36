"""Offers of a worker of a shared store: what this machine has that not each one has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from uncaged_bundles.errors import UsageError

from .catalog import is_installed
from .display.output import Styled, note

if TYPE_CHECKING:
    from uncaged_bundles.storage.registry import Registry
    from uncaged_engine.services.settings import Config
    from uncaged_engine.services.shared import StoreWorker, WorkerOffer

NOTHING_FOUND = "none"


def offer_of(
    config: Config, *, slots: int, offers: Iterable[str], flows: Iterable[str]
) -> WorkerOffer:
    """Return what this machine takes as a worker.

    Args:
        offers: names besides those that are found here; ``none`` leaves these out. flows: none
            stands for all.
    Raises:
        UsageError: a name is none.
    """
    from uncaged_bundles.names import parse_flow_name
    from uncaged_engine.services.shared import WorkerOffer, parse_need

    named = set(split_names(offers))
    found = set() if NOTHING_FOUND in named else set(found_offers(config))
    chosen = frozenset(str(parse_flow_name(name)) for name in split_names(flows))
    return WorkerOffer(
        slots=slots,
        offers=frozenset(found.union(map(parse_need, named - {NOTHING_FOUND}))),
        flows=chosen or None,
    )


def split_names(texts: Iterable[str]) -> list[str]:
    """Return the names in some texts, each of which may have several, separated by commas."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def found_offers(config: Config) -> Iterator[str]:
    """Yield what this machine has: a browser, the agents that can answer here, and the MCP servers
    of its config. Nothing is started and no request is sent.
    """
    if is_installed("do"):
        from uncaged_dispatcher.mcp.effect import server_need

        yield from map(server_need, config.mcp_servers)
    if is_installed("browser"):
        from uncaged_browser.browsers.installed import installed_browsers
        from uncaged_browser.effect.limits import BROWSER

        if any(one.usable for one in installed_browsers(os.environ)):
            yield BROWSER
    if is_installed("agents"):
        yield from _found_agents(config)


def _found_agents(config: Config) -> Iterator[str]:
    from uncaged_agents.kinds import kinds
    from uncaged_agents.program.table import table
    from uncaged_engine.services.secrets import source_of
    from uncaged_engine.shared.needs import agent_need, is_everywhere
    from uncaged_models.settings import KEY_VARIABLES

    keys = {str(wire): variable for wire, variable in KEY_VARIABLES.items()}
    for use in kinds():
        if use not in keys:
            is_found = not is_everywhere(use)
        else:
            key = source_of(keys[use], config.keys, os.environ)
            is_found = key is not None and (key.file is not None or bool(os.environ.get(keys[use])))
        if is_found:
            yield agent_need(use, {})
    for row in table().values():
        if row.program_on(os.environ.get("PATH", "")) is not None:
            yield agent_need(row.use, {"row": row.name})
    for agent in config.agents.values():
        if not is_everywhere(agent.use):
            yield agent_need(agent.use, agent.settings)


def note_unknown(registry: Registry, flows: Iterable[str]) -> None:
    """Note which flows the store lacks. They may be added later."""
    for name in sorted(flows):
        if registry.flow(name) is None:
            note(Styled("warning: ", "yellow"), f"the store has no flow {name!r} yet")


def workers_named(texts: Iterable[str], workers: Iterable[StoreWorker]) -> list[str]:
    """Return the names of those workers that *texts* name: by the whole name, by the number behind
    its ``#``, or by the host.

    Raises:
        UsageError: a text names none.
    """
    names = [one.name for one in workers]
    found: list[str] = []
    for text in texts:
        fitting = [
            name
            for name in names
            if text in (name, name.partition("#")[2]) or name.rpartition(".")[0] == text
        ]
        if not fitting:
            known = ", ".join(names) or "none"
            raise UsageError(f"{text!r} is no worker of the store; its workers: {known}")
        found += fitting
    return list(dict.fromkeys(found))
