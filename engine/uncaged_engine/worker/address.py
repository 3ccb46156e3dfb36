"""Where the worker of a bundle listens, and the lock that makes it the only one."""

from __future__ import annotations

import os
import stat
from _blake2 import blake2b
from pathlib import Path

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage.store import Store

PROTOCOL = 1
MAX_SOCKET_PATH_BYTES = 100  # the kernel takes 107
SHORT = Path("/tmp")  # noqa: S108 - ours inside it is checked; `tempfile` tries directories out, and two processes might find two


def socket_path(store: Store, bundle: BundleHash) -> Path:
    """The worker's socket: in the store, or in a short directory of the user's own if the store's path is too long for a socket."""
    name = f"{bundle}-{PROTOCOL}.sock"
    path = store.run / name
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    digest = blake2b(os.fsencode(store.root), digest_size=8).hexdigest()
    return _runtime_directory() / f"{digest}-{name}"


def lock_path(store: Store, bundle: BundleHash) -> Path:
    return store.run / f"{bundle}-{PROTOCOL}.lock"


def report_path(store: Store, bundle: BundleHash) -> Path:
    """What a worker prints to its standard error: only a bug does that."""
    return store.run / f"{bundle}-{PROTOCOL}.err"


def _runtime_directory() -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR")
    path = Path(base) / "uncaged" if base and len(base) < 40 else SHORT / f"uncaged-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(f"{path} is not a directory of yours alone; remove it, or set XDG_RUNTIME_DIR to one that is")
    return path
