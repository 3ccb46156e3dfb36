"""Mark of a thread that a copy of a store brought, and that no worker has taken up here: the store
that it comes from may still drive it.

The file (``ID.copied``) is on disk before the journal has its name, and before a later copy appends
lines. A worker removes it once it has accepted a request for the thread. Only threads without an
end have one.
"""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.storage.files import sync_directory, write_atomically

from .archive import beside

SUFFIX = ".copied"


def is_marked(journal: Path) -> bool:
    """Tell whether the thread with this journal, plain or archived, was not taken up here."""
    return beside(journal, SUFFIX).exists()


def mark(journal: Path) -> None:
    """Make the mark durable; call it before lines of another store are written."""
    path = beside(journal, SUFFIX)
    if path.exists():
        sync_directory(path.parent)  # its writer may not have come as far as that
    else:
        write_atomically(path, b"")


def unmark(journal: Path) -> None:
    """Remove the mark, if there is one; the caller holds the journal's lock."""
    beside(journal, SUFFIX).unlink(missing_ok=True)
