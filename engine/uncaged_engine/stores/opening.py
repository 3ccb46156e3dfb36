"""Address of a store to its implementation: a directory, or a URL whose scheme an entry point of
the group ``uncaged_workflow.stores`` serves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from uncaged_bundles.errors import EnvironmentLacks, UsageError

from .. import plugins
from .protocol import StoreBackend, StoreOpener

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_POSTGRESQL = frozenset(("postgresql", "postgres"))
_MISSPELT = re.compile(
    r"[\s'\"]*postgres(?:ql)?(?::|//)|[a-z][a-z0-9+.-]*:/"  # postgresql:/host/x
    r"|\s*[a-z_]+\s*="  # host=… password=…, which libpq would understand
    r"|(?://)?[^/.~].*(?::.*@|password\s*=)",  # user:password@host/x, host/x?password=…
    re.IGNORECASE | re.DOTALL,
)
"""Addresses that are no directory's: they may have a password."""
INSTALL = "pip install 'uncaged-workflow[cluster]'"


@contextmanager
def opened(address: str, *, create: bool, is_visible: bool) -> Iterator[StoreBackend]:
    """Open the store at *address* for a block. Raises: as `open_store`."""
    store = open_store(address, create=create, is_visible=is_visible)
    try:
        yield store
    finally:
        store.close()


def open_store(address: str, *, create: bool, is_visible: bool) -> StoreBackend:
    """Open the store at *address*.

    Args: as `StoreOpener`; a directory may be relative, and may begin with ``~``.
    Raises:
        UsageError: no store is served under this scheme, or it is a misspelt URL. Others: as
            `StoreOpener`.
    """
    found = _SCHEME.match(address)
    if found is None:
        if not address:
            raise UsageError("an empty address; give a store's directory, or postgresql://…")
        if _MISSPELT.match(address):  # not the address itself: it may have a password
            raise UsageError(
                "the store's address looks like one in PostgreSQL, and does not begin with postgresql://; "
                "write postgresql://HOST/DATABASE?schema=NAME, or ./ in front of a directory"
            )
        from .directory.backend import (
            DirectoryBackend,  # 6 ms, which a list of a shared store does without
        )

        return DirectoryBackend.open(Path(address), create=create)
    scheme = found[1].lower()
    if not plugins.is_known(scheme, group=plugins.STORES):
        if scheme in _POSTGRESQL:
            raise EnvironmentLacks(f"a store in PostgreSQL needs another package: {INSTALL}")
        # not the address itself: it may have a password
        raise UsageError(
            f"no store is served under {scheme}://; give the address of one at postgresql://…"
        )
    try:
        opener = cast("StoreOpener", plugins.find(scheme, group=plugins.STORES))
        return opener(address, create=create, is_visible=is_visible)
    except ModuleNotFoundError as exc:
        raise EnvironmentLacks(
            f"a store under {scheme}:// needs the package {exc.name}: {INSTALL}"
        ) from exc
