"""MCP servers of a store's config as packs: their tools are listed where a sentence, a list or a
person needs them, and become flows of the registry.

Rule 1: a server is started for its own list or its own call only.
Rule 2: its list is kept until its settings change, the server reports a change, or a person asks
for it anew.
Rule 3: a server that fails hinders no other; it is tried again after some minutes.
Rule 4: no flow or pack that is not the server's is replaced, and a new version of a tool needs
consent again.
"""

from __future__ import annotations

import json
import os
import time
from _blake2 import blake2b
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncaged_bundles.clean import clean_line, shorten
from uncaged_bundles.errors import NotFoundError, UncagedError
from uncaged_bundles.records import asdict, dataclass, replace
from uncaged_bundles.storage.registry import Flow
from uncaged_engine.api import Engine

from ..packs.registered import RegisteredPacks
from .client import McpCancelled, McpProblem
from .listings import (
    ServerListing,
    listed_servers,
    read_listing,
    remove_listing,
    write_listing,
)
from .opening import ServerAccess
from .tool_flows import ToolFlow, flows_of

if TYPE_CHECKING:
    from uncaged_engine.services.settings import McpServerSettings

LIST_TIMEOUT_S = 20.0
RETRY_AFTER_MS = 10 * 60 * 1000
AT_ONCE = 8
MAX_PACK_DESCRIPTION_CHARACTERS = 200
SOURCE = "mcp"
"""Begins the source of a flow in the registry: ``mcp:weather``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswer:
    """Answer of a server that was asked for its tools, or its problem."""

    tools: tuple[Any, ...] = ()
    title: str = ""
    problem: str = ""


class McpPacks:
    """Packs of the configured MCP servers of one store."""

    def __init__(self, engine: Engine, environment: Mapping[str, str] | None = None) -> None:
        self._engine = engine
        self._environment = os.environ if environment is None else environment
        self._packs = RegisteredPacks(engine.store)
        self._config = engine.config

    @property
    def configured(self) -> Mapping[str, McpServerSettings]:
        """Return the settings of the servers by name; of a shared store none, since the tools of
        one machine's servers would be flows of all.
        """
        return {} if self._engine.is_shared else self._config.mcp_servers

    def bring_in(self, names: Iterable[str] | None = None, *, anew: bool = False) -> bool:
        """List the tools of servers whose list is not known, and make the registry follow. Returns
        whether a server was asked.

        Args:
            names: only these servers. anew: list them whatever is known, and add the flows that a
                person removed.
        """
        known = listed_servers(self._engine.store)
        if not self.configured and not known:
            return False
        self._remove(name for name in known if name not in self.configured)
        wanted = [
            name
            for name in (self.configured if names is None else names)
            if name in self.configured and (anew or self._is_due(name))
        ]
        if not wanted:
            return False
        with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(wanted))) as pool:
            answers = list(pool.map(self._ask, wanted))
        for name, answer in zip(wanted, answers, strict=True):
            self._keep(name, answer, anew=anew)
        return True

    def problems(self, name: str) -> list[str]:
        """Return why a server's tools cannot be used, and the tools that were left out."""
        listing = read_listing(self._engine.store, name)
        if listing is None or name not in self.configured:
            return []
        found = [f"its tools could not be listed: {listing.problem}"] if listing.problem else []
        return [*found, *listing.left_out]

    def _is_due(self, name: str) -> bool:
        if not self._packs.is_enabled(name):
            return False
        listing = read_listing(self._engine.store, name)
        if listing is None or listing.configuration != self._configuration(name):
            return True
        if listing.problem:
            return _now_ms() - listing.listed_ms > RETRY_AFTER_MS
        return listing.outdated

    def _configuration(self, name: str) -> str:
        settings = json.dumps(asdict(self.configured[name]), sort_keys=True)
        return blake2b(settings.encode(), digest_size=12).hexdigest()

    def _ask(self, name: str) -> ServerAnswer:
        access = ServerAccess(
            config=self._config,
            environment=self._environment,
            directory=Path.home(),
        )
        timeout_s = min(LIST_TIMEOUT_S, self.configured[name].timeout_s)
        try:
            with access.open(name, timeout_s) as (client, redact):
                tools = redact(client.list_tools())
                about = redact(client.title or client.instructions)
        except (McpProblem, McpCancelled, UncagedError) as exc:
            return ServerAnswer(problem=clean_line(str(exc)))
        except RecursionError:
            return ServerAnswer(problem="its list of tools is nested too deeply")
        return ServerAnswer(tools=tuple(tools), title=str(about))

    def _keep(self, name: str, answer: ServerAnswer, *, anew: bool) -> None:
        """Make pack, flows and listing follow a server's answer."""
        store = self._engine.store
        former = read_listing(store, name)
        flows: Mapping[str, str] = {} if former is None else former.flows
        listing = ServerListing(
            configuration=self._configuration(name),
            listed_ms=_now_ms(),
            flows=flows,
            removed=() if former is None else former.removed,
            problem=answer.problem,
            left_out=() if former is None else former.left_out,
        )
        conflict = self._conflict(name)
        if conflict:
            listing = replace(listing, problem=conflict)
        if not listing.problem:
            listing = self._changed(name, answer, listing, former, anew=anew)
            about = shorten(answer.title, MAX_PACK_DESCRIPTION_CHARACTERS)
            self._packs.put_server(
                name, f"Tools of the MCP server {name}{f' ({about})' if about else ''}."
            )
        # last: without a listing, the next look lists the tools again and finds the same flows
        write_listing(store, name, listing)

    def _changed(
        self,
        name: str,
        answer: ServerAnswer,
        listing: ServerListing,
        former: ServerListing | None,
        *,
        anew: bool,
    ) -> ServerListing:
        """Add, replace and remove flows; return the listing of those that there are now."""
        found = flows_of(name, self.configured[name], answer.tools)
        flows = self._engine.registry.read().flows
        gone = {flow for flow in listing.flows if flow not in flows}
        removed = set() if anew else {*listing.removed, *gone}
        problems = list(found.problems)
        kept: dict[str, str] = {}
        for flow in found.flows:
            there = flows.get(flow.name)
            if there is not None and there.source != _source(name):
                problems.append(
                    f"the tool {flow.tool!r} is left out: there is another flow {flow.name!r}"
                )
            elif flow.name not in removed:
                same_settings = former and former.configuration == listing.configuration
                self._put(name, flow, there, settles=not same_settings)
                kept[flow.name] = flow.tool
        self._drop(name, (flow for flow in listing.flows if flow not in kept), flows)
        return replace(
            listing, flows=kept, removed=tuple(sorted(removed)), left_out=tuple(problems)
        )

    def _put(self, server: str, flow: ToolFlow, there: Flow | None, *, settles: bool) -> None:
        """Add a version of a tool, or leave it. settles: the settings say anew which are
        trusted.
        """
        registry = self._engine.registry
        confirm = not flow.trusted
        is_new = there is None or there.hash != flow.bundle.hash
        if is_new:
            # granted: naming the server in config.yaml is the person's consent to its calls
            registry.add(
                flow.name,
                flow.bundle,
                now_ms=_now_ms(),
                source=_source(server),
                granted=True,
                confirm=confirm,
            )
        elif settles and there is not None and there.confirm != confirm:
            registry.set_confirm(flow.name, confirm)

    def _drop(self, server: str, names: Iterable[str], flows: Mapping[str, Flow]) -> None:
        for name in names:
            flow = flows.get(name)
            if flow is not None and flow.source == _source(server):
                self._engine.registry.remove(name)

    def _remove(self, names: Iterable[str]) -> None:
        """Remove what belongs to servers that are configured no more."""
        for name in names:
            listing = read_listing(self._engine.store, name)
            if listing is not None:
                self._drop(name, listing.flows, self._engine.registry.read().flows)
            self._packs.drop_server(name)
            remove_listing(self._engine.store, name)

    def _conflict(self, name: str) -> str:
        """Return why the server cannot have the pack of its name, or an empty text."""
        try:
            pack = self._packs.get(name)
        except NotFoundError:
            pack = None
        if pack is not None and pack.is_shipped:
            return f"the pack {name!r} comes from {pack.origin}; give the server another name"
        for flow in self._foreign_flows(name):
            return f"the flow {flow!r} belongs to a pack {name!r}; give the server another name"
        return ""

    def _foreign_flows(self, name: str) -> Iterator[str]:
        """Yield flows of others that declare the pack of a server's name."""
        from ..index.rule_index import RuleIndex

        index = RuleIndex(self._engine)
        try:
            index.refresh()
            declared = index.declared_flows(name)
        finally:
            index.close()
        for flow in declared:
            found = self._engine.registry.flow(flow)
            if found is not None and found.source != _source(name):
                yield flow


def _source(server: str) -> str:
    return f"{SOURCE}:{server}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
