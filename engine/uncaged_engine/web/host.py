"""A host in a request has the spelling that it has in a policy, so the two can be compared."""

from __future__ import annotations

from uncaged_bundles import hosts

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
