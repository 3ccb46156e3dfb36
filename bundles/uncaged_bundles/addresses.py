"""Each address of the network is public, private, next to the machine itself, or nothing that a
request can mean.
"""

from __future__ import annotations

import ipaddress
from typing import Literal

from .records import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Reach = Literal["public", "private", "close", "never"]
"""close: link-local, or where clouds tell a machine about itself, credentials included."""

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
PRIVATE = tuple(
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "198.18.0.0/15",
        "fc00::/7",
    )
)
METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """words: what the address is, for a sentence that begins with it."""

    reach: Reach
    words: str


def judge(address: Address) -> Verdict:
    """Say what *address* is; one that carries another (IPv4 inside IPv6) is what the inner one
    is.
    """
    inner = _inner(address)
    if inner is not None:
        verdict = judge(inner)
        return Verdict(reach=verdict.reach, words=f"{inner} in another spelling, {verdict.words}")
    if address in METADATA:
        return Verdict(reach="close", words="where a cloud tells a machine about itself")
    if address.is_unspecified or (address.version == 4 and address.packed[0] == 0):
        return Verdict(reach="never", words="no address of any machine")
    if address.is_multicast:
        return Verdict(reach="never", words="a multicast address")
    if address.is_loopback:
        return Verdict(reach="private", words="this machine itself")
    if address.is_link_local:
        return Verdict(reach="close", words="a link-local address")
    if any(address in network for network in PRIVATE):
        return Verdict(reach="private", words="an address of a private network")
    if address.is_reserved or not address.is_global or getattr(address, "is_site_local", False):
        return Verdict(reach="never", words="a reserved address")
    return Verdict(reach="public", words="a public address")


def literal(host: str) -> Address | None:
    """The address that a canonical host is, or None if it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _inner(address: Address) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in NAT64:
        return ipaddress.IPv4Address(address.packed[12:])
    return address.ipv4_mapped or address.sixtofour
