"""Classification of IP addresses: public, private, close to the machine, or never a destination."""

from __future__ import annotations

import ipaddress
from typing import Literal

from .records import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Reach = Literal["public", "private", "close", "never"]
"""close: link-local, or a cloud's metadata service, which serves credentials."""

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
class AddressKind:
    """The class of an address. words: a phrase for the sentence "ADDRESS is …"."""

    reach: Reach
    words: str


def classify(address: Address) -> AddressKind:
    """Return the kind of *address*. An IPv6 address that embeds an IPv4 address has its kind."""
    inner = _inner(address)
    if inner is not None:
        kind = classify(inner)
        return AddressKind(reach=kind.reach, words=f"{inner} in another spelling, {kind.words}")
    if address in METADATA:
        return AddressKind(reach="close", words="where a cloud tells a machine about itself")
    if address.is_unspecified or (address.version == 4 and address.packed[0] == 0):
        return AddressKind(reach="never", words="no address of any machine")
    if address.is_multicast:
        return AddressKind(reach="never", words="a multicast address")
    if address.is_loopback:
        return AddressKind(reach="private", words="this machine itself")
    if address.is_link_local:
        return AddressKind(reach="close", words="a link-local address")
    if any(address in network for network in PRIVATE):
        return AddressKind(reach="private", words="an address of a private network")
    if address.is_reserved or not address.is_global or getattr(address, "is_site_local", False):
        return AddressKind(reach="never", words="a reserved address")
    return AddressKind(reach="public", words="a public address")


def literal(host: str) -> Address | None:
    """Return a canonical host as an address, or None if it is a name."""
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
