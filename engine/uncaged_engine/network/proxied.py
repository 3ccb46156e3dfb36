"""Requests that a script sends to its proxy: parsed by h11, with their target, and in the form for
the server.

Rule 1: a head that two parsers could read differently is refused (request smuggling).
"""

from __future__ import annotations

import re

import h11
from uncaged_bundles.urls import Target

from .target import canonical, read_target

END_OF_HEAD = b"\r\n\r\n"
HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"te", b"upgrade", b"host"})
"""Headers that end at the proxy; Host is written anew from the address."""
_LINE = re.compile(rb"[!-~\x80-\xff][\t -~\x80-\xff]*")
_LENGTH = re.compile(rb"(?:content-length|transfer-encoding)[\t ]*:", re.IGNORECASE)
_HOST = re.compile(rb"host:", re.IGNORECASE)


class Denied(Exception):
    """Refusal of a request; the message has the reason."""


def parse(incoming: h11.Connection, head: bytes, rest: bytes) -> h11.Request:
    """Return the request of a head without its end; *rest* are the bytes after that.

    Raises:
        Denied: it is malformed, or another parser could split it differently, such as at a bare
            line feed: request smuggling.
    """
    lines = head.split(b"\r\n")
    if not all(_LINE.fullmatch(line) for line in lines):
        raise Denied("a line of the request is folded, or has a line break inside")
    if sum(_LENGTH.match(line) is not None for line in lines) > 1:
        raise Denied("the request states its length twice")
    if not any(_HOST.match(line) for line in lines):
        lines.append(b"Host:")  # the address has the host, but h11 requires the header
    try:
        incoming.receive_data(b"\r\n".join(lines) + END_OF_HEAD + rest)
        request = incoming.next_event()
        if not isinstance(request, h11.Request) or request.http_version not in (b"1.0", b"1.1"):
            raise Denied("the request's first line is not METHOD ADDRESS HTTP/1.1")
        if request.method == b"CONNECT" and not isinstance(incoming.next_event(), h11.EndOfMessage):
            raise Denied("the request for a tunnel has a body")
    except h11.RemoteProtocolError as exc:
        raise Denied(f"the request is not HTTP/1.1: {exc}") from None
    return request


def target_of(request: h11.Request) -> Target:
    """Return the target of a request: ``host:port`` for a tunnel, else a whole address."""
    text = request.target.decode("ascii")
    if request.method != b"CONNECT":
        target = read_target(text)
        if target.scheme != "http":
            raise Denied(f"{text[:200]!r}: a proxy is asked for a tunnel to an encrypted address")
        return target
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Denied(f"{text[:200]!r} is no host and port")
    return Target(scheme="https", host=canonical(host), port=int(port), path="/")


def origin_form(request: h11.Request, target: Target) -> h11.Request:
    """Return the request as the server gets it: origin form, no headers for the proxy,
    ``Connection: close``.
    """
    listed = {
        name.strip().lower()
        for key, value in request.headers
        if key == b"connection"
        for name in value.split(b",")
    } - {b"content-length", b"transfer-encoding"}
    kept = [
        (bytes(name), bytes(value))
        for name, value in request.headers.raw_items()
        if not name.lower().startswith(b"proxy-") and name.lower() not in HOP_BY_HOP | listed
    ]
    return h11.Request(
        method=request.method,
        target=target.path.encode("ascii"),
        headers=[(b"Host", target.authority.encode("ascii")), *kept, (b"Connection", b"close")],
    )
