"""Opening of a shared store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uncaged_bundles.errors import RefusedError, UsageError

from ..stores.opening import opened
from .dispatch import SharedStore


@contextmanager
def opened_shared(address: str, *, is_visible: bool) -> Iterator[SharedStore]:
    """Yield the store at an address.

    Args:
        is_visible: as `StoreOpener`.
    Raises:
        UsageError: the address is a directory. RefusedError: the store has no dispatcher. Others:
            as `stores.opening.opened`.
    """
    if "://" not in address:
        # not the address itself: it may have a password
        raise UsageError(
            "a shared store has an address of the form postgresql://HOST/DATABASE?schema=NAME;"
            " threads of a directory run on its own machine, by `uncaged-workflow run` without --store"
        )
    with opened(address, create=False, is_visible=is_visible) as backend:
        if not isinstance(backend, SharedStore):
            raise RefusedError(
                f"the store at {backend.address} hands no threads to workers; give the address of one in PostgreSQL"
            )
        yield backend
