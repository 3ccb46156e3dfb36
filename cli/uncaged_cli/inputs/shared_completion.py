"""Completion of flows of a shared store: one connection, and no engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .stores import chosen_store, is_for_shared

if TYPE_CHECKING:
    from uncaged_bundles.storage.snapshot import Snapshot

CONNECT_TIMEOUT_S = 2
"""libpq knows no shorter one."""


def shared_flows(context: click.Context) -> Snapshot | None:
    """Return the registry of the shared store that the line names; None if it names none.

    Raises:
        UncagedError, OSError: it cannot be read.
    """
    from uncaged_bundles.storage.store import Store

    chosen = chosen_store(context, Store.open()) if is_for_shared(context) else None
    if chosen is None:
        return None
    from uncaged_bundles.storage.document import Document
    from uncaged_bundles.storage.snapshot import read_document
    from uncaged_engine.stores.opening import opened

    address = chosen.address
    if "connect_timeout" not in address:
        address += f"{'&' if '?' in address else '?'}connect_timeout={CONNECT_TIMEOUT_S}"
    with opened(address, create=False, is_visible=chosen.is_visible) as store:
        found = store.registry.read()
    text = b"" if found is None else found.data
    return read_document(Document.parse(text, "the registry"), "the registry")[0]
