"""Client of a store in PostgreSQL in a process of its own, as `python -m testbed.cluster_client
ADDRESS start | open`: makes a thread, or becomes the owner of the one that is there, says so on
standard output, and waits for the end of standard input.
"""

from __future__ import annotations

import sys

from uncaged_cluster.store import open_store
from uncaged_engine.services.stores import ThreadNotes

from .stored_threads import entry_of, script


def main() -> None:
    address, deed = sys.argv[1:]
    store = open_store(address, create=True, is_visible=True)
    found = script()
    if deed == "start":
        store.threads.start(entry_of(found), found.sealed, ThreadNotes())
    else:
        store.threads.open(found.bundle, found.thread)
    print("done", flush=True)  # noqa: T201 - the test waits for it
    sys.stdin.read()


if __name__ == "__main__":
    main()
