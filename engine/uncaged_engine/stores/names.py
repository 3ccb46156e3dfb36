"""Names of a store's parts that are not ids: which files are shared documents, and which names
conversations have.
"""

from __future__ import annotations

import re

from uncaged_bundles.errors import UsageError
from uncaged_bundles.ids import is_thread_id

_FILE = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}"
_DOCUMENT = re.compile(
    rf"(?:proposals|constructions|packs|schedules)/{_FILE}"
    r"|dispatcher/(?:preferences\.json|collisions\.jsonl)"
    r"|selectors\.json|queues\.json"
)
"""Files that hold a team's data. All others are a machine's own (config, keys, sockets, worktrees,
browser profiles, pairings), one person's (seen notifications), or are derived from these.
"""
_OTHERS = re.compile(r".*(?:\.lock|\.tmp)")
"""Files beside a document: its lock, and what a killed writer left."""
FOLDERS = ("proposals", "constructions", "packs", "schedules", "dispatcher", "")
"""Directories of a store that have documents; the last one is the store's own."""


def is_document(name: str) -> bool:
    """Tell whether *name* (a relative path) is that of a shared document."""
    return _DOCUMENT.fullmatch(name) is not None and _OTHERS.fullmatch(name) is None


def parse_document(name: str) -> str:
    """Return the name of a document.

    Raises:
        UsageError: *name* is none.
    """
    if not is_document(name):
        raise UsageError(f"{name[:200]!r} is no name of a shared document")
    return name


def parse_conversation(name: str) -> str:
    """Return the name of a conversation.

    Raises:
        UsageError: *name* is none.
    """
    if not is_thread_id(name):
        raise UsageError(f"{name[:200]!r} is no name of a conversation")
    return name
