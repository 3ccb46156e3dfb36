"""Registered packs of a store: pack files in ``packs/``, packs of other distributions, and what a
person enabled or disabled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from uncaged_bundles.errors import (
    DamagedError,
    NotFoundError,
    RefusedError,
    UncagedError,
    UsageError,
)
from uncaged_bundles.records import dataclass, replace
from uncaged_bundles.storage.files import changing, read_if_there, write_atomically
from uncaged_bundles.storage.store import Store
from uncaged_engine.services import entry_points as plugins

from ..file_states import states_of_files
from .pack import FROM_FLOWS, FROM_PERSON, FROM_SERVER, Pack, file_name, read_pack

GROUP = "uncaged_workflow.packs"
LOCK_TIMEOUT_S = 30.0
STATES = "states"
"""Name of the file with a person's choices: pack name to enabled or not."""
SERVERS = "servers"
"""Name of the directory with the packs of MCP servers. A change in it changes its own state, which
`RegisteredPacks.stamp` sees.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackSet:
    """The packs of a store at one moment. problems: sentences about packs that cannot be used."""

    packs: Mapping[str, Pack]
    problems: tuple[str, ...] = ()

    def of_flow(self, flow: str, declared: str) -> Pack | None:
        """Return the pack of a flow: the one that its descriptor declares, else the first that
        lists it. A declared pack without a file has its name only.
        """
        if declared:
            return self.packs.get(declared) or Pack(name=declared, origin=FROM_FLOWS)
        return next((pack for pack in self.packs.values() if flow in pack.flows), None)


class RegisteredPacks:
    """The packs of one store."""

    def __init__(self, store: Store) -> None:
        self.directory = store.documents / "packs"
        self._stamp: object = None
        # once: the entry points of a process do not change
        self._installation = plugins.installation()[1]
        self._set = PackSet(packs={})

    def stamp(self) -> str:
        """Return a text that is another one after each change of a pack."""
        return f"{states_of_files(self.directory)} {self._installation}"

    def read(self) -> PackSet:
        """Return the packs as they are now; files are read again only after a change."""
        stamp = self.stamp()
        if stamp != self._stamp:
            self._set = self._read()
            self._stamp = stamp
        return self._set

    def add(self, data: bytes, where: str) -> Pack:
        """Register a pack file, or replace the pack of that name."""
        pack = read_pack(data, where)
        self.directory.mkdir(mode=0o700, exist_ok=True)
        write_atomically(file_name(self.directory, pack.name), data)
        self._choose(pack.name, None)
        return pack

    def remove(self, name: str) -> None:
        """Remove a registered pack file; its flows stay.

        Raises:
            RefusedError: the pack belongs to a distribution.
        """
        path = file_name(self.directory, name)
        try:
            path.unlink()
        except FileNotFoundError as exc:
            pack = self.get(name)
            raise RefusedError(
                f"the pack {name!r} comes from {pack.origin}; 'uncaged-workflow pack disable {name}' turns it off"
            ) from exc
        self._choose(name, None)

    def put_server(self, name: str, description: str) -> None:
        """Register the pack of an MCP server; its flows declare it."""
        directory = self.directory / SERVERS
        data = json.dumps({"name": name, "description": description}).encode()
        if read_if_there(file_name(directory, name)) != data:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(file_name(directory, name), data)

    def drop_server(self, name: str) -> None:
        """Remove the pack of an MCP server."""
        file_name(self.directory / SERVERS, name).unlink(missing_ok=True)

    def set_enabled(self, name: str, enabled: bool, known: Iterable[str] = ()) -> None:
        """Enable or disable a pack whole. known: packs that only descriptors name."""
        if name not in known:
            self.get(name)
        self._choose(name, enabled)

    def get(self, name: str) -> Pack:
        """Return one pack.

        Raises:
            NotFoundError: there is none of this name.
        """
        packs = self.read().packs
        if name in packs:
            return packs[name]
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), packs, n=3) or sorted(packs)[:10]
        known = f"; there are: {', '.join(close)}" if close else ""
        raise NotFoundError(f"no pack {name[:80]!r}{known}")

    def is_enabled(self, name: str) -> bool:
        """Return whether the flows of a pack are read; a pack without a file is enabled."""
        pack = self.read().packs.get(name)
        return self._states().get(name, True) if pack is None else pack.enabled

    def _read(self) -> PackSet:
        packs: dict[str, Pack] = {}
        problems: list[str] = []
        for name in plugins.names(group=GROUP):
            try:
                found = _shipped(name)
            except UncagedError as exc:
                problems.append(f"the pack {name}: {exc}")
                continue
            packs[found.name] = found
        for path in self._files():
            if not path.is_file():
                problems.append(f"{path} is no file")
                continue
            origin = FROM_SERVER if path.parent.name == SERVERS else FROM_PERSON
            try:
                found = read_pack(read_if_there(path) or b"", str(path), origin)
            except UncagedError as exc:
                problems.append(str(exc))
                continue
            packs[found.name] = found
        states = self._states()
        packs = {
            name: replace(pack, enabled=states.get(name, pack.enabled))
            for name, pack in packs.items()
        }
        for name in states.keys() - packs.keys():
            packs[name] = Pack(name=name, enabled=states[name], origin=FROM_FLOWS)
        ordered = sorted(packs.values(), key=lambda pack: (-pack.priority, pack.name))
        return PackSet(packs={pack.name: pack for pack in ordered}, problems=tuple(problems))

    def _files(self) -> list[Path]:
        """Return the pack files, those of MCP servers first: a person's file replaces them."""
        directories = (self.directory / SERVERS, self.directory)
        try:
            # hidden ones are an editor's
            return [path for each in directories for path in sorted(each.glob("[!.]*.yaml"))]
        except OSError:
            return []

    def _states(self) -> dict[str, bool]:
        path = self.directory / STATES
        data = read_if_there(path)
        if not data:
            return {}
        from uncaged_bundles.storage.document import load_yaml

        remedy = "correct it, or remove it, and each pack is enabled or not as its own file says"
        try:
            found = load_yaml(data, str(path)) or {}
        except DamagedError as exc:
            raise DamagedError(f"{exc}; {remedy}") from exc
        if not (isinstance(found, dict) and all(isinstance(one, bool) for one in found.values())):
            raise UsageError(f"{path}: must be a mapping from pack to true or false; {remedy}")
        return {name: enabled for name, enabled in found.items() if isinstance(name, str)}

    def _choose(self, name: str, enabled: bool | None) -> None:
        self.directory.mkdir(mode=0o700, exist_ok=True)
        path = self.directory / STATES
        with changing(path, timeout_s=LOCK_TIMEOUT_S):
            former = self._states()
            states = {key: value for key, value in former.items() if key != name}
            if enabled is not None:
                states[name] = enabled
            # quoted: `no` alone is a truth value
            lines = [f"{json.dumps(key)}: {json.dumps(value)}\n" for key, value in states.items()]
            if states != former:
                write_atomically(path, "".join(sorted(lines)).encode())
        self._stamp = None


def _shipped(name: str) -> Pack:
    """Return the pack that a distribution registers: the bytes of a pack file, its path, or a
    function that returns one of the two.
    """
    found = plugins.find(name, group=GROUP)
    if callable(found):
        found = found()
    if isinstance(found, os.PathLike):
        found = Path(found).read_bytes()
    if not isinstance(found, bytes):
        raise UsageError(f"the entry point {name} gives {type(found).__name__}, not a pack file")
    return read_pack(found, f"the pack {name}", origin=plugins.distribution_of(name, group=GROUP))
