"""Host names, and host entries of policies, in one canonical spelling.

An entry is ``api.example.com`` (443 for https, 80 for http), ``api.example.com:8443``,
``api.example.com:*`` (any port), ``*.example.com`` (all names below it, not itself) or ``*`` (any
host, any port). The spelling is lower case, ASCII, without a final dot; an IP address has only its
usual spelling.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache

from . import shapes
from .addresses import literal
from .records import dataclass

ANY_PORT = 0
HOST_NETWORK = "host"
"""The value of a script's ``network`` that means the machine's own, instead of a list of hosts."""
MAX_CHARACTERS = 253
FORMS = "write it as in api.example.com, *.example.com, api.example.com:8080 or api.example.com:*"
LISTS: Mapping[str, str] = {
    "http": "hosts",
    "fetch": "hosts",
    "script": "network",
    "browser": "hosts",
}
"""The key of a policy that lists hosts, by kind of effect."""
BINDING = frozenset({"http", "browser"})
"""Kinds of effects whose `secrets` are bound to hosts."""

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class NoHost(ValueError):
    """The text is no host. disguised: it is an IP address in an unusual spelling."""

    def __init__(self, message: str, *, disguised: bool = False) -> None:
        super().__init__(message)
        self.disguised = disguised


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """One entry. host: canonical, "" for all. below: the names below it, not itself. port: None is
    the scheme's default.
    """

    host: str
    below: bool
    port: int | None


def check_policy(policy: Mapping[str, object], path: shapes.Path) -> None:
    """Check the host entries of a policy; values of another shape are skipped.

    Raises:
        ShapeError: an entry is no host.
    """
    for kind, limits in policy.items():
        if not isinstance(limits, Mapping) or kind not in LISTS:
            continue
        check_entries(limits.get(LISTS[kind]), (*path, kind, LISTS[kind]))
        bound = limits.get("secrets") if kind in BINDING else None
        for name, entries in bound.items() if isinstance(bound, Mapping) else ():
            check_entries(entries, (*path, kind, "secrets", name))


def check_entries(entries: object, path: shapes.Path) -> None:
    """Check a list of host entries.

    Raises:
        ShapeError: an entry is no host.
    """
    for index, text in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(text, str):
            try:
                read_entry(text)
            except NoHost as exc:
                raise shapes.ShapeError((*path, index), str(exc)) from exc


def flaw_in_address(url: str) -> str | None:
    """Return why no request can go to an address, or None; a host with variables (``${name}``) is
    not checked.
    """
    scheme, split, rest = url.strip().partition("://")
    if "${" in scheme or (not split and "${" in url):
        return None
    if not split or scheme.lower() not in ("http", "https"):
        return f"{shapes.shown(url)} is no web address; it begins with http:// or https://"
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "${" in place:
        return None
    if "@" in place:
        return "holds a user name or a password; put secret:NAME into a header instead, as in Bearer secret:NAME"
    try:
        entry = read_entry(place)
    except NoHost as exc:
        return str(exc).removesuffix(f"; {FORMS}")
    return f"{shapes.shown(url)} names no host" if entry.below or entry.port == ANY_PORT else None


@lru_cache(maxsize=1024)
def read_entry(text: str) -> HostEntry:
    """Return a host entry of one of these forms.

    Raises:
        NoHost: it has another form.
    """
    if text == "*":
        return HostEntry(host="", below=True, port=ANY_PORT)
    if "/" in text:
        place = text.partition("://")[2].partition("/")[0]
        raise NoHost(
            f"{shapes.shown(text)} is no host but an address; "
            + (f"name its host alone: {place}" if place else FORMS)
        )
    head, _, tail = text.rpartition(":")
    split = bool(head) and not tail.endswith("]") and (head.endswith("]") or ":" not in head)
    host, port = (head, tail) if split else (text, "")
    if split and port != "*" and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise NoHost(f"{shapes.shown(text)} is no host: {port!r} is no port; {FORMS}")
    below = host.startswith("*.")
    try:
        name = canonical(host.removeprefix("*."))
    except NoHost as exc:
        raise NoHost(
            f"{shapes.shown(text)} is no host: {exc}; {FORMS}", disguised=exc.disguised
        ) from exc
    if below and literal(name) is not None:
        raise NoHost(f"{shapes.shown(text)} is no host: nothing is below an address")
    return HostEntry(
        host=name, below=below, port=ANY_PORT if port == "*" else int(port) if port else None
    )


@lru_cache(maxsize=1024)
def canonical(text: str) -> str:
    """Return the canonical spelling of a host: a name, an IPv4 address, or an IPv6 address without
    its brackets.

    Raises:
        NoHost: it is none.
    """
    if text.startswith("[") or ":" in text:
        return _ipv6(text.removeprefix("[").removesuffix("]"))
    name = (
        _ascii(text) if not text.isascii() or "xn--" in text.lower() else text.lower()
    ).removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(name)
    if (
        not name
        or len(name) > MAX_CHARACTERS
        or not all(_LABEL.fullmatch(label) for label in labels)
    ):
        raise NoHost(f"{shapes.shown(text)} is no name of a host")
    return name


def _ipv4(name: str) -> str:
    try:
        return str(ipaddress.IPv4Address(name))
    except ValueError:
        raise NoHost(
            f"{name!r} is an address in disguise; write it as four decimal numbers, as in 192.0.2.1",
            disguised=True,
        ) from None


def _ipv6(text: str) -> str:
    if "%" in text:
        raise NoHost(
            f"{shapes.shown(text)} names a network interface, which no request may choose",
            disguised=True,
        )
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        raise NoHost(f"{shapes.shown(text)} is no IPv6 address") from None


def _ascii(text: str) -> str:
    """Return the ASCII form of an internationalized name (``bücher.example`` is
    ``xn--bcher-kva.example``).
    """
    import idna

    try:
        name = idna.encode(text.lower(), uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as exc:
        raise NoHost(
            f"{shapes.shown(text)} is no internationalised name of a host ({exc})"
        ) from None
    return name.lower()
