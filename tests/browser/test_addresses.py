"""Addresses and hosts as people write them."""

from __future__ import annotations

import pytest
from uncaged_browser.addresses import is_private


@pytest.mark.parametrize(
    "place",
    ["localhost:1", "10.0.0.1", "[::1]", "[fe80::1]:8080", "169.254.0.1", "nas", "a.lan", "", "[x"],
)
def test_hosts_of_this_machine_and_its_network_are_private(place: str) -> None:
    """By their number, by a name without a dot, or by the end of their name; so is what is no
    host.
    """
    assert is_private(place)


@pytest.mark.parametrize("place", ["example.org", "example.org:8080", "8.8.8.8", "[2606:4700::1]"])
def test_public_hosts_are_not_private(place: str) -> None:
    """With a port and without one."""
    assert not is_private(place)
