"""Addresses and hosts in requests, parsed by `uncaged_bundles`; errors are raised as WebProblem."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uncaged_bundles import hosts, urls
from uncaged_bundles.urls import Target

from .problems import WebProblem


def read_target(text: str) -> Target:
    """Read an absolute address; raises like `canonical`."""
    with _problems():
        return urls.read_target(text)


def redirect_target(target: Target, location: str) -> Target:
    """Return the address that a redirect from *target* leads to; raises like `canonical`."""
    with _problems():
        return target.following(location)


def canonical(host: str) -> str:
    """Return the canonical spelling of a host.

    Raises:
        WebProblem: kind *effect* if it is no host, *refused-address* if it is an address in
            disguise.
    """
    with _problems():
        return hosts.canonical(host)


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except (urls.UrlError, hosts.NoHost) as exc:
        raise WebProblem("refused-address" if exc.disguised else "effect", str(exc)) from None
