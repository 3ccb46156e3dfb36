"""A host has one spelling here: lower case, ASCII, without a final dot; and an address can be written in no other way than the usual."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from .address import Address
from .problems import WebProblem

LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
MAX_CHARACTERS = 253


@lru_cache(maxsize=1024)
def canonical(text: str) -> str:
    """The one spelling of a host: a name, an IPv4 address, or an IPv6 address without its brackets.

    Raises:
        WebProblem: kind *effect* if it is no host, *refused-address* if it is an address in disguise.
    """
    if text.startswith("[") or ":" in text:
        return _ipv6(text.removeprefix("[").removesuffix("]"))
    name = (_ascii(text) if not text.isascii() or "xn--" in text.lower() else text.lower()).removesuffix(".")
    labels = name.split(".")
    if NUMBER.fullmatch(labels[-1]):
        return _ipv4(name)
    if not name or len(name) > MAX_CHARACTERS or not all(LABEL.fullmatch(label) for label in labels):
        raise WebProblem("effect", f"{text!r} is no name of a host")
    return name


def literal(host: str) -> Address | None:
    """The address that a canonical host is, or None if it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _ipv4(name: str) -> str:
    try:
        return str(ipaddress.IPv4Address(name))
    except ValueError:
        raise WebProblem(
            "refused-address", f"{name!r} is an address in disguise; write it as four decimal numbers, as in 192.0.2.1"
        ) from None


def _ipv6(text: str) -> str:
    if "%" in text:
        raise WebProblem("refused-address", f"{text!r} names a network interface, which no request may choose")
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        raise WebProblem("effect", f"{text!r} is no IPv6 address") from None


def _ascii(text: str) -> str:
    """The ASCII form of an internationalised name (``bücher.example`` is ``xn--bcher-kva.example``)."""
    import idna

    try:
        name = idna.encode(text.lower(), uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as exc:
        raise WebProblem("effect", f"{text!r} is no internationalised name of a host ({exc})") from None
    return name.lower()
