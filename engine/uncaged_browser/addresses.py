"""Addresses as people write them: ``nytimes.com``, ``localhost:8000/cart``, ``http://…``."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from uncaged_bundles.errors import UsageError

__all__ = ["address_of", "is_name", "is_private", "parts_of", "without_login"]

NAME = re.compile(r"(?:[\w-]{1,63}\.)+[a-z]{2,63}|localhost|(?:[\w-]+\.)+localhost", re.IGNORECASE)
MAX_CHARACTERS = 2_000
PRIVATE_NAMES = (".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".test")
"""Ends of names that are no public hosts."""


def address_of(text: str) -> str:
    """Return the address that a person's text means; without a scheme, https, and on this machine
    http.

    Raises:
        UsageError: it is no address of the web.
    """
    wanted = text.strip()
    if not 0 < len(wanted) <= MAX_CHARACTERS or not wanted.isprintable() or " " in wanted:
        raise UsageError(f"{wanted[:80]!r} is no address")
    if re.match(r"https?://", wanted, re.IGNORECASE):
        return wanted
    host = _host(f"//{wanted}")
    if host is None:
        raise UsageError(
            f"{wanted[:80]!r} is no address of the web; write a name such as example.com, or https://…"
        )
    is_local = host == "localhost" or host.endswith(".localhost") or _is_loopback(host)
    return f"{'http' if is_local else 'https'}://{wanted}"


def is_name(text: str) -> bool:
    """Whether a text that is no address may be the name of a page: it has no scheme and no path."""
    return text.isprintable() and ":" not in text and "/" not in text and bool(text.strip())


def is_private(place: str) -> bool:
    """Whether a host, perhaps with a port, is this machine or in its network, as far as its name
    says.
    """
    parts = parts_of(f"//{place}")
    host = "" if parts is None else parts.hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(PRIVATE_NAMES)


def parts_of(url: str) -> SplitResult | None:
    """Return the parts of an address; None if its host or its port is malformed."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # it is read when it is asked for
    except ValueError:
        return None
    return parts


def without_login(url: str) -> str:
    """Return an address without the name and password before its host."""
    parts = parts_of(url)
    if parts is None or "@" not in parts.netloc:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _host(address: str) -> str | None:
    parts = parts_of(address)
    host = None if parts is None else parts.hostname
    return host if host is not None and (NAME.fullmatch(host) or _is_ip(host)) else None


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return _is_ip(host) and ipaddress.ip_address(host).is_loopback
