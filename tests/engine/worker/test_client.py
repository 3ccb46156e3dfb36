"""Requests to a bundle's worker: each reaches it, however many are made at once and by whatever
name the store is known.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from testbed.journals import BUNDLE
from uncaged_bundles.storage.store import Store
from uncaged_engine.worker import address, client


def test_a_queue_that_is_full_is_waited_for(store: Store) -> None:
    """A thousand may come at once; the last of them gets no error for it."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    waiting: list[socket.socket] = []
    with listener:
        listener.bind(str(address.socket_path(store, BUNDLE)))
        listener.listen(0)
        while True:
            waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            waiting[-1].setblocking(False)
            try:
                waiting[-1].connect(str(address.socket_path(store, BUNDLE)))
            except BlockingIOError:
                break
        found: list[socket.socket | None] = []
        comer = threading.Thread(target=lambda: found.append(client.connect(store, BUNDLE)))
        comer.start()
        comer.join(0.1)  # it waits for its turn; it would have given up if it did not
        assert (comer.is_alive(), found) == (True, [])
        for _ in range(len(waiting) - 1):
            listener.accept()[0].close()
        comer.join(60)
        assert found[0] is not None
        found[0].close()
    for one in waiting:
        one.close()


@pytest.mark.parametrize("length", [10, 200])
def test_a_store_by_another_name_has_the_same_worker(tmp_path: Path, length: int) -> None:
    """Through a link, and where the path is too long for a socket; or two would wait for one
    another.
    """
    real = Store.open(tmp_path / ("s" * length))
    short, long = tmp_path / "l", tmp_path / ("l" * 150)
    for link in (short, long):
        link.symlink_to(real.root)
    found = {address.socket_path(Store.open(root), BUNDLE) for root in (real.root, short, long)}
    assert len(found) == 1
    assert len(str(found.pop())) <= address.MAX_SOCKET_PATH_BYTES
