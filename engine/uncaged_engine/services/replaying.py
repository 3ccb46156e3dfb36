"""Replay of a thread from its files, without a store: the bundle, the journal and its blobs."""

from __future__ import annotations

from ..journal.recover import History, recover_strictly
from ..threads.transfer import ThreadFiles, read_files
from ..threads.verify import Verification, replay_files

__all__ = [
    "History",
    "ThreadFiles",
    "Verification",
    "read_files",
    "recover_strictly",
    "replay_files",
]
