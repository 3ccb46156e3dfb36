"""Where the worker of a bundle listens, and the lock that makes it the only one."""

from __future__ import annotations

import os
from _blake2 import blake2b
from pathlib import Path

from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage.runtime import runtime_directory
from uncaged_bundles.storage.store import Store

PROTOCOL = 1
READY, NOT_READY = b"1", b"0"
"""What a new worker writes to the pipe of whoever started it: it listens, or (before the reason) it cannot."""
MAX_SOCKET_PATH_BYTES = 100  # the kernel takes 107
MAX_DIRECTORY_BYTES = 60
"""What is left for a directory beside the name of a socket in it, with room to spare."""


def socket_path(store: Store, bundle: BundleHash) -> Path:
    """The worker's socket: in the store, or in a short directory of the user's own if the store's path is too long for a socket."""
    name = f"{bundle}-{PROTOCOL}.sock"
    run = os.path.realpath(store.run)  # all who come by another name of the same store must find the same socket
    path = Path(run, name)
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    digest = blake2b(os.fsencode(path.parent.parent), digest_size=8).hexdigest()
    return runtime_directory(os.environ, max_bytes=MAX_DIRECTORY_BYTES) / f"{digest}-{name}"


def draining_path(store: Store, bundle: BundleHash, pid: int) -> Path:
    """Where a worker listens that takes no more threads, beside the one that replaces it."""
    return socket_path(store, bundle).with_suffix(f".{pid}")


def draining_paths(store: Store, bundle: BundleHash) -> list[Path]:
    """Where such workers listen, or listened."""
    path = socket_path(store, bundle)
    try:
        return [one for one in path.parent.glob(f"{path.stem}.*") if one.suffix[1:].isdecimal()]
    except OSError:
        return []


def lock_path(store: Store, bundle: BundleHash) -> Path:
    return store.run / f"{bundle}-{PROTOCOL}.lock"


def report_path(store: Store, bundle: BundleHash) -> Path:
    """What a worker prints to its standard error: only a bug does that."""
    return store.run / f"{bundle}-{PROTOCOL}.err"
