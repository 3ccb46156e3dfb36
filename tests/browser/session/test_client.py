"""Connection to a session that a thread of execution keeps."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest
from testbed.scripted_sessions import ScriptedSession, scripted_session
from uncaged_browser.session.address import DEFAULT_SESSION
from uncaged_browser.session.client import SessionGone, kept_client
from uncaged_bundles.storage.store import Store


def session(store: Store) -> AbstractContextManager[ScriptedSession]:
    """Answer each request with the number of its connection."""

    def reply(_: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        return {"value": {"number": number}}

    return scripted_session(store, reply)


def asked(store: Store) -> Any:
    """Return the number of the connection on which a request was answered."""
    with kept_client(store, DEFAULT_SESSION) as client:
        return client.status()["number"]


def test_a_thread_of_execution_keeps_its_connection(store: Store) -> None:
    """Another one has another connection; each is used again."""
    with session(store):
        assert [asked(store), asked(store)] == [1, 1]
        found: list[Any] = []
        other = threading.Thread(target=lambda: found.extend((asked(store), asked(store))))
        other.start()
        other.join()
        assert found == [2, 2]
        assert asked(store) == 1


def test_a_session_that_was_killed_and_started_again_is_connected_to_again(store: Store) -> None:
    """No request is lost to the connection of the former process."""
    with session(store):
        assert asked(store) == 1
    with session(store):
        assert [asked(store), asked(store)] == [1, 1]


def test_a_connection_that_was_cut_or_failed_is_not_used_again(store: Store) -> None:
    """A cut from another thread, and a block that fails, end it."""
    with session(store):
        with kept_client(store, DEFAULT_SESSION) as client:
            client.cut()
            with pytest.raises(SessionGone):
                client.status()
        assert asked(store) == 2
        with pytest.raises(RuntimeError), kept_client(store, DEFAULT_SESSION):
            raise RuntimeError
        assert asked(store) == 3
