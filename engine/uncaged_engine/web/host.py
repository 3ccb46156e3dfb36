"""A host in a request has the spelling that it has in a policy, so the two can be compared."""

from __future__ import annotations

import ipaddress

from uncaged_bundles import hosts

from .address import Address
from .problems import WebProblem


def canonical(text: str) -> str:
    """The one spelling of a host: a name, an IPv4 address, or an IPv6 address without its brackets.

    Raises:
        WebProblem: kind *effect* if it is no host, *refused-address* if it is an address in disguise.
    """
    try:
        return hosts.canonical(text)
    except hosts.NoHost as exc:
        raise WebProblem("refused-address" if exc.disguised else "effect", str(exc)) from None


def literal(host: str) -> Address | None:
    """The address that a canonical host is, or None if it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
