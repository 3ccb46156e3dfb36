"""Paths of a browser session: its socket, its lock, its error report, its profile."""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from pathlib import Path

from uncaged_bundles.errors import UsageError
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.local_sockets import named_socket

__all__ = [
    "DEFAULT_SESSION",
    "checked_name",
    "lock_path",
    "profile_path",
    "report_path",
    "socket_path",
]

DEFAULT_SESSION = "default"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
SHARED_PROFILES = Path("/var/lib/uncaged-workflow/profiles")
"""Parent of root's profiles: a browser of root's runs as another user, who cannot enter root's own
directories.
"""


def checked_name(name: str) -> str:
    """Return the name of a session.

    Raises:
        UsageError: it is none.
    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name[:60]!r} is no name of a browser session; use lower-case letters, digits and -"
        )
    return name


def socket_path(store: Store, name: str) -> Path:
    """Return the socket of a session."""
    return named_socket(store, f"browser-{name}.sock")


def lock_path(store: Store, name: str) -> Path:
    """Return the lock that one process of a session can hold."""
    return store.run / f"browser-{name}.lock"


def report_path(store: Store, name: str) -> Path:
    """Return the file that is a session's standard error, which only a bug writes to."""
    return store.run / f"browser-{name}.err"


def profile_path(store: Store, name: str) -> Path:
    """Return the directory with a session's profile: cookies, logins and history."""
    if os.geteuid() != 0:
        return store.root / "browser" / name
    digest = blake2b(os.fsencode(os.path.realpath(store.root)), digest_size=8).hexdigest()
    return SHARED_PROFILES / digest / name
