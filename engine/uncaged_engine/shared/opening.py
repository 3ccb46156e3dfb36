"""Opening of a shared store with its dispatcher, for a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uncaged_bundles.errors import RefusedError

from ..stores.opening import opened
from .dispatch import Dispatcher, SharedStore


@contextmanager
def opened_shared(address: str) -> Iterator[tuple[SharedStore, Dispatcher]]:
    """Yield the store at an address that a command's argument names, and its dispatcher.

    Raises:
        RefusedError: the store is one machine's. Others: as `stores.opening.opened`.
    """
    with opened(address, create=False, is_visible=True) as backend:
        if not isinstance(backend, SharedStore):
            raise RefusedError(
                f"{backend.address} is a directory, whose threads run on this machine alone; give postgresql://…, or leave out --store"
            )
        dispatcher = backend.dispatcher()
        try:
            yield backend, dispatcher
        finally:
            dispatcher.close()
