"""Classification of IP addresses, in any spelling."""

from __future__ import annotations

import ipaddress

import pytest
from uncaged_bundles.addresses import classify


@pytest.mark.parametrize(
    ("reach", "addresses"),
    [
        (
            "public",
            [
                "93.184.216.34",
                "1.1.1.1",
                "2606:4700::1111",
                "64:ff9b::5db8:d822",
                "::ffff:93.184.216.34",
                "2002:5db8:d822::1",
            ],
        ),
        (
            "private",
            [
                "127.0.0.1",
                "127.8.9.1",
                "10.0.0.1",
                "172.31.255.255",
                "192.168.1.1",
                "100.64.0.1",
                "198.18.0.1",
                "::1",
                "fd12::1",
            ],
        ),
        ("private", ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1"]),
        (
            "close",
            [
                "169.254.1.1",
                "169.254.169.254",
                "fe80::1",
                "fd00:ec2::254",
                "fd20:ce::254",
                "100.100.100.200",
                "168.63.129.16",
            ],
        ),
        (
            "close",
            ["192.0.0.192", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"],
        ),
        (
            "never",
            [
                "0.0.0.0",  # noqa: S104 - an address, nothing is bound
                "0.1.2.3",
                "::",
                "224.0.0.1",
                "255.255.255.255",
                "240.0.0.1",
                "ff02::1",
                "fec0::1",
                "2001::1",
                "::7f00:1",
            ],
        ),
        (
            "never",
            ["192.0.2.1", "203.0.113.7", "2001:db8::1", "100::1", "64:ff9b:1::1", "::ffff:0.0.0.0"],
        ),
    ],
)
def test_each_address_has_its_reach(reach: str, addresses: list[str]) -> None:
    """An address that carries another is what the other is: no spelling of a private one is
    public.
    """
    assert {
        address: classify(ipaddress.ip_address(address)).reach for address in addresses
    } == dict.fromkeys(addresses, reach)


def test_an_address_inside_another_is_named() -> None:
    """So that a person sees what was meant."""
    assert (
        "127.0.0.1 in another spelling, this machine itself"
        in classify(ipaddress.ip_address("::ffff:127.0.0.1")).words
    )
