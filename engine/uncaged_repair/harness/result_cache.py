"""Cache of test results, kept with the thread's files. Its key is the exact state of the
repository's files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from uncaged_bundles.storage.files import write_atomically

from .host import HostGone, RunRequest
from .results import BROKEN, Message, RunReport, run_of

MAX_BYTES = 32 << 20


class MessageSource(Protocol):
    """Interface of a host that the cache uses."""

    def messages(self, request: RunRequest) -> Sequence[Message]: ...


class CachedHost:
    """Host with a cache of its messages. tree: digest of the files and of the runner; a cache of
    another digest is dropped.
    """

    def __init__(self, host: MessageSource, path: Path, tree: str) -> None:
        self._host, self._path, self._tree = host, path, tree
        self._known = _load(path, tree)
        self._new = False

    def run(self, request: RunRequest) -> RunReport:
        name = hashlib.blake2b(repr(request).encode(), digest_size=16).hexdigest()
        if name not in self._known:
            try:
                self._known[name] = list(self._host.messages(request))
            except HostGone:
                return BROKEN
            self._new = True
        return run_of(self._known[name])

    def save(self) -> None:
        """Write the cache atomically, if there is a new result."""
        if not self._new:
            return
        data = json.dumps({"tree": self._tree, "runs": self._known}).encode()
        if len(data) <= MAX_BYTES:
            write_atomically(self._path, data)


def tree_digest(top: Path, *more: str) -> str:
    """Return a digest of all files below *top*, and of *more*."""
    digest = hashlib.blake2b("\0".join(more).encode(), digest_size=16)
    for directory, names, files in os.walk(top):
        names.sort()
        for name in sorted(files):
            path = Path(directory, name)
            status = path.lstat()
            digest.update(
                f"{path.relative_to(top)}\0{status.st_mode}\0{status.st_size}\0".encode(
                    errors="surrogateescape"
                )
            )
            digest.update(os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes())
    return digest.hexdigest()


def _load(path: Path, tree: str) -> dict[str, Sequence[Message]]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    runs = found.get("runs") if isinstance(found, dict) and found.get("tree") == tree else None
    return (
        {name: messages for name, messages in runs.items() if isinstance(messages, list)}
        if isinstance(runs, dict)
        else {}
    )
