"""Paths of a bundle's worker: its socket, its lock and its error report."""

from __future__ import annotations

import os
from _blake2 import blake2b
from pathlib import Path

from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage.runtime import runtime_directory
from uncaged_bundles.storage.store import Store

PROTOCOL = 1
READY, NOT_READY = b"1", b"0"
"""First byte that a new worker writes to its starter's pipe: it listens, or it cannot (the reason
follows).
"""
MAX_SOCKET_PATH_BYTES = 100  # the kernel takes 107
MAX_DIRECTORY_BYTES = 60
MAX_NAME_BYTES = 22
"""Longest directory and name for a socket, so that both fit with the digest of the store."""


def socket_path(store: Store, bundle: BundleHash) -> Path:
    """Return the worker's socket: in the store, or in a short per-user directory if the store's
    path is too long for a socket.
    """
    return named_socket(store, f"{bundle}-{PROTOCOL}.sock")


def named_socket(store: Store, name: str) -> Path:
    """Return the path of a socket of the store, by the same rule. A long name is replaced by its
    digest there.
    """
    # all who come by another name of the same store must find the same socket
    run = os.path.realpath(store.run)
    path = Path(run, name)
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    directory = runtime_directory(os.environ, max_bytes=MAX_DIRECTORY_BYTES)
    if len(name) > MAX_NAME_BYTES:
        name = f"{_digest(name)}.sock"
    return directory / f"{_digest(path.parent.parent)}-{name}"


def _digest(name: str | Path) -> str:
    return blake2b(os.fsencode(name), digest_size=8).hexdigest()


def draining_path(store: Store, bundle: BundleHash, pid: int) -> Path:
    """Return the socket of a worker that accepts no more threads, beside that of its
    replacement.
    """
    return socket_path(store, bundle).with_suffix(f".{pid}")


def draining_paths(store: Store, bundle: BundleHash) -> list[Path]:
    """Return the sockets of such workers, dead ones included."""
    path = socket_path(store, bundle)
    try:
        return [one for one in path.parent.glob(f"{path.stem}.*") if one.suffix[1:].isdecimal()]
    except OSError:
        return []


def lock_path(store: Store, bundle: BundleHash) -> Path:
    """Return the lock that only one worker of a bundle can hold."""
    return store.run / f"{bundle}-{PROTOCOL}.lock"


def report_path(store: Store, bundle: BundleHash) -> Path:
    """Return the file that is a worker's standard error, which only a bug writes to."""
    return store.run / f"{bundle}-{PROTOCOL}.err"
