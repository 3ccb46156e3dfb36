"""Management of packs: reports about them with their flows, and changes, checked before they are
made.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.records import dataclass
from uncaged_engine.api import Engine

from ..index.rule_index import RuleIndex
from ..mcp.servers import McpPacks
from ..packs.pack import FROM_FLOWS, FROM_SERVER, Pack, read_pack
from ..packs.registered import RegisteredPacks


@dataclass(frozen=True, slots=True, kw_only=True)
class PackReport:
    """A pack as it is now.

    flows: its flows in the registry; disabled: those of them that are disabled; missing: flows that
    it lists and the registry does not have. patterns: by enabled flow. problems: rules that cannot
    be used.
    """

    pack: Pack
    flows: tuple[str, ...]
    missing: tuple[str, ...]
    disabled: tuple[str, ...]
    patterns: Mapping[str, tuple[str, ...]]
    problems: tuple[str, ...]


class PackManager:
    """The packs of one store."""

    def __init__(self, engine: Engine) -> None:
        self._address = engine.address
        self._packs = RegisteredPacks(engine.store)
        self._servers = McpPacks(engine)
        self._index = RuleIndex(engine)

    def add(self, data: bytes, where: str) -> PackReport:
        """Register a pack file whose rules can be used.

        Raises:
            UsageError: the file or a rule is not valid.
        """
        from ..index.compiling import compile_pack

        pack = read_pack(data, where)
        compile_pack("pack", pack)
        self._packs.add(data, where)
        return self.report(pack.name)

    def remove(self, name: str) -> None:
        """Remove a registered pack file.

        Raises:
            NotFoundError, RefusedError: there is none, or it is another distribution's.
        """
        self._packs.remove(name)

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Enable or disable a pack whole.

        Raises:
            NotFoundError: there is no such pack. RefusedError: it is the product's own.
        """
        # the tools of a server need not be known for this
        is_server = name in self._servers.configured
        if not is_server and self.report(name).pack.built_in and not enabled:
            raise RefusedError(
                f"the pack {name!r} has the sentences for the command itself and cannot be disabled"
            )
        self._packs.set_enabled(name, enabled, known=(name,))

    def reports(self) -> tuple[list[PackReport], tuple[str, ...]]:
        """Return all packs, those that only descriptors name included, and the problems of files
        that are no packs. The tools of MCP servers are listed if that was not done.
        """
        self._servers.bring_in()
        return [self._report(name) for name in self.names()], self._packs.read().problems

    def names(self) -> dict[str, str]:
        """Return the packs with their descriptions; no MCP server is started for it."""
        self._index.refresh()
        packs = self._packs.read().packs
        names = dict.fromkeys([*packs, *self._index.pack_names(), *self._servers.configured])
        return {name: packs[name].description if name in packs else "" for name in names}

    def report(self, name: str, *, anew: bool = False) -> PackReport:
        """Return one pack. The tools of an MCP server are listed if that was not done, or *anew*.

        Raises:
            NotFoundError: there is none of this name. UsageError: there is nothing to list anew.
        """
        if anew and name not in self._servers.configured:
            self._packs.get(name)
            where = "in config.yaml" if self._address is None else f"of {self._address}"
            raise UsageError(f"{name!r} is no MCP server {where}, so there is nothing to list anew")
        self._servers.bring_in([name], anew=anew)
        self._index.refresh()
        return self._report(name)

    def shared_flows(self, name: str) -> list[str]:
        """Return a sentence for each flow that another pack lists, too."""
        packs = self._packs.read().packs
        flows = packs[name].flows
        return [
            f"the flow {flow!r} is listed by the pack {other.name!r}, too"
            for other in packs.values()
            if other.name != name
            for flow in other.flows
            if flow in flows
        ]

    def _report(self, name: str) -> PackReport:
        declared = self._index.declared_flows(name)
        packs = self._packs.read().packs
        if name not in packs and name in self._servers.configured:
            is_enabled = self._packs.is_enabled(name)
            pack = Pack(name=name, enabled=is_enabled, origin=FROM_SERVER)
        elif name in packs or not declared:
            pack = self._packs.get(name)
        else:
            pack = Pack(name=name, enabled=self._packs.is_enabled(name), origin=FROM_FLOWS)
        flows, missing, disabled = [], [], []
        patterns: dict[str, tuple[str, ...]] = {}
        problems = [*self._index.problems_of_pack(name), *self._servers.problems(name)]
        for flow in dict.fromkeys((*pack.flows, *declared)):
            found = self._index.flow(flow)
            if found is None:
                missing.append(flow)
                continue
            row, facts = found
            flows.append(flow)
            disabled += [] if row.enabled else [flow]
            patterns[flow] = tuple(rule.pattern for rule in self._index.rules_of(row.digest))
            listed = facts.get("problems")
            if isinstance(listed, list):
                problems += [f"{flow}: {problem}" for problem in listed]
        return PackReport(
            pack=pack,
            flows=tuple(flows),
            missing=tuple(missing),
            disabled=tuple(disabled),
            patterns=patterns,
            problems=tuple(problems),
        )
