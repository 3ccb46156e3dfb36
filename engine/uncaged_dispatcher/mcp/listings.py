"""Listings of MCP servers: what is known about the tools of each, in ``dispatcher/servers`` of the
store. A file that cannot be read is no listing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from uncaged_bundles.records import asdict, dataclass, field, replace
from uncaged_bundles.storage.files import read_if_there, write_atomically
from uncaged_bundles.storage.store import Store

DIRECTORY = ("dispatcher", "servers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListing:
    """A server's tools at the last time when they were listed.

    configuration: digest of the settings that this was made for. listed_ms: time of the last try.
    flows: tool by flow. removed: flows that a person removed since. problem: why the last try
    failed, or empty. left_out: a sentence for each tool without a flow. outdated: the server said
    that its tools have changed.
    """

    configuration: str
    listed_ms: int
    flows: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    problem: str = ""
    left_out: tuple[str, ...] = ()
    outdated: bool = False


def read_listing(store: Store, server: str) -> ServerListing | None:
    """Return what is known about a server; None if it was never listed."""
    data = read_if_there(_path(store, server))
    with suppress(ValueError, TypeError, KeyError):
        found: dict[str, Any] = json.loads(data or b"null")
        texts = {key: tuple(found[key]) for key in ("removed", "left_out")}
        return ServerListing(**{**found, **texts})
    return None


def write_listing(store: Store, server: str, listing: ServerListing) -> None:
    path = _path(store, server)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(path, json.dumps(asdict(listing), ensure_ascii=False).encode())


def remove_listing(store: Store, server: str) -> None:
    _path(store, server).unlink(missing_ok=True)


def listed_servers(store: Store) -> list[str]:
    """Return the servers that have a listing."""
    directory = store.root.joinpath(*DIRECTORY)
    return sorted(path.stem for path in directory.glob("*.json")) if directory.is_dir() else []


def mark_outdated(store: Store, server: str) -> None:
    """Note that a server has other tools now: they are listed again when they are next needed."""
    listing = read_listing(store, server)
    if listing is not None and not listing.outdated:
        write_listing(store, server, replace(listing, outdated=True))


def _path(store: Store, server: str) -> Path:
    return store.root.joinpath(*DIRECTORY, f"{server}.json")
