"""Reuse of idle clients, and cancellation of their exchanges."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from uncaged_effects.web.client import KEPT, Clients
from uncaged_engine.door.effects import Cancel
from uncaged_engine.network.client import HttpClient
from uncaged_engine.network.connection import NetworkSession
from uncaged_engine.network.problems import RequestCancelled
from uncaged_engine.network.route import Route
from uncaged_engine.network.rules import HostRules


@pytest.fixture
def clients() -> Iterator[Clients]:
    clients = Clients()
    yield clients
    clients.close()


def route(number: int = 0) -> Route:
    return Route(
        rules=HostRules(kind=f"kind-{number}"),
        secure=False,
        proxy=None,
        ca_file=None,
        ca_directory=None,
    )


def used(
    clients: Clients, number: int = 0, cancel: Cancel | None = None, *, cut: bool = False
) -> HttpClient:
    cancel = cancel or Cancel()
    with clients.borrowed(route(number), time.monotonic() + 60, cancel) as client:
        if cut:
            cancel.request()
    return client


def test_a_client_is_used_again_by_its_like(clients: Clients) -> None:
    """A client is reused under the same rules, by one exchange at a time."""
    first = used(clients)
    assert used(clients) is first
    assert used(clients, 1) is not first
    with clients.borrowed(route(), time.monotonic() + 60, Cancel()) as client:
        assert client is first
        assert used(clients) is not first


def test_a_client_that_was_cut_is_not_used_again(clients: Clients) -> None:
    """A cut client is closed, even if its exchange was complete."""
    first = used(clients, cut=True)
    assert first.session.is_cut
    assert used(clients) is not first


def test_a_client_in_which_something_went_wrong_is_not_used_again(clients: Clients) -> None:
    """A client is closed after an error, since bytes may still be on their way."""
    with (
        pytest.raises(ValueError, match="wrong"),
        clients.borrowed(route(), time.monotonic() + 60, Cancel()) as first,
    ):
        raise ValueError("wrong")
    assert used(clients) is not first


def test_only_so_many_are_kept(clients: Clients) -> None:
    """The one that was not used for the longest time goes."""
    first, second = used(clients, 0), used(clients, 1)
    for number in range(2, KEPT + 1):
        used(clients, number)
    assert used(clients, 1) is second
    assert used(clients, 0) is not first


def test_a_late_cut_does_not_reach_the_next() -> None:
    """A kill that comes after the end of its request does not end the next request."""
    session = NetworkSession()
    cut_first = session.begin(time.monotonic() + 60)
    session.end()
    cut_second = session.begin(time.monotonic() + 60)
    cut_first()
    assert session.left_s() > 0
    cut_second()
    with pytest.raises(RequestCancelled):
        session.left_s()
