"""Opening of a shared store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError

from ..stores.opening import open_store
from ..stores.protocol import StoreBackend
from .dispatch import SharedStore


@contextmanager
def opened_shared(
    address: str, *, is_visible: bool, made: Callable[[str], None] | None = None
) -> Iterator[SharedStore]:
    """Yield the store at an address.

    Args:
        is_visible: as `StoreOpener`. made: make the store if there is none, and call this with its
            address. A store of an older version stays as it is: workers may use it.
    Raises:
        UsageError: the address is a directory. RefusedError: the store has no dispatcher. Others:
            as `stores.opening.open_store`.
    """
    if "://" not in address:
        # not the address itself: it may have a password
        raise UsageError(
            "a shared store has an address of the form postgresql://HOST/DATABASE?schema=NAME;"
            " threads of a directory run on its own machine, by `uncaged-workflow run` without --store"
        )
    with closing(_opened(address, is_visible, made)) as backend:
        if not isinstance(backend, SharedStore):
            raise RefusedError(
                f"the store at {backend.address} hands no threads to workers; give the address of one in PostgreSQL"
            )
        yield backend


def _opened(address: str, is_visible: bool, made: Callable[[str], None] | None) -> StoreBackend:
    try:
        return open_store(address, create=False, is_visible=is_visible)
    except NotFoundError:
        if made is None:
            raise
    backend = open_store(address, create=True, is_visible=is_visible)
    made(backend.address)
    return backend
