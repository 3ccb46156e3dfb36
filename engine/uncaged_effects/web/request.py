"""Body of the ``http`` effect and its HTTP request, checked before any name is resolved."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from uncaged_bundles import shapes
from uncaged_bundles.urls import Target
from uncaged_engine.door.bodies import ABSENT, Absent, Seconds
from uncaged_engine.services.network import WebProblem, read_target

from .credentials import Credentials

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
REPEATABLE = SAFE | {"PUT", "DELETE"}
"""Idempotent methods."""
Form = Literal["json", "form", "text", "bytes"]
FORMS: tuple[Form, ...] = ("json", "form", "text", "bytes")
TYPES: Mapping[Form, str] = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "text": "text/plain; charset=utf-8",
    "bytes": "application/octet-stream",
}
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
CONNECTION_HEADERS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "accept-encoding",
    }
)
"""Headers of the connection, which the engine sets."""

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Content of a request, before its secrets are filled in."""

    form: Form
    value: Any

    def bytes_for(self, target: Target, credentials: Credentials) -> bytes:
        match self.form:
            case "json":
                return json.dumps(
                    credentials.fill_data(self.value, target),
                    ensure_ascii=False,
                    separators=(",", ":"),
                ).encode()
            case "form":
                return urlencode(
                    [(name, credentials.fill_data(value, target)) for name, value in self.value]
                ).encode()
            case "text":
                return str(self.value).encode()
            case "bytes":
                return bytes(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """HTTP request. query: added to the address's own. headers: names as the bundle spells them.
    follow: whether redirects are followed.
    """

    method: str
    target: Target
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: Body | None = None
    follow: bool = True

    def has(self, header: str) -> bool:
        return any(name.lower() == header for name, _ in self.headers)

    def with_header(self, name: str, value: str) -> HttpRequest:
        return replace(self, headers=(*self.headers, (name, value)))


def method(value: object, path: shapes.Path) -> str:
    """Return a method in upper case."""
    return shapes.one_of(*METHODS)(shapes.text(value, path).upper(), path)


def headers(value: object, path: shapes.Path) -> tuple[tuple[str, str], ...]:
    """Return names and values of headers that a bundle may set."""
    found = []
    for name, inner in shapes.mapping(value, path).items():
        if not HEADER_NAME.fullmatch(name):
            raise shapes.ShapeError(path, f"{name!r} is no name of a header")
        if name.lower() in CONNECTION_HEADERS or name.lower().startswith("proxy-"):
            raise shapes.ShapeError(
                path, f"{name} belongs to the connection, which the engine makes; leave it out"
            )
        found.append((name, shapes.text(inner, (*path, name))))
    return tuple(found)


def header_bytes(name: str, value: str) -> tuple[bytes, bytes]:
    """Encode a header that has its secrets; an error message never repeats the value."""
    if any((character < " " and character != "\t") or character == "\x7f" for character in value):
        raise WebProblem(
            "effect",
            f"headers: the value of {name} holds a line break or another control character",
        )
    try:
        return name.encode("ascii"), value.strip(" \t").encode("latin-1")
    except UnicodeEncodeError:
        raise WebProblem(
            "effect",
            f"headers: the value of {name} holds characters that no header can; percent-encode them",
        ) from None


def pairs(value: object, path: shapes.Path) -> tuple[tuple[str, str], ...]:
    """Return pairs of name and text; a list repeats its name."""
    found = []
    for name, inner in shapes.mapping(value, path).items():
        for item in inner if isinstance(inner, list) else [inner]:
            if not isinstance(item, Scalar):
                problem = f"must be a text, a number, a truth value or a list of them, not {shapes.shown(item)}"
                raise shapes.ShapeError((*path, name), problem)
            found.append((name, item if isinstance(item, str) else json.dumps(item)))
    return tuple(found)


def base64_bytes(value: object, path: shapes.Path) -> bytes:
    """Decode a Base64 text."""
    try:
        return base64.b64decode(shapes.text(value, path), validate=True)
    except (binascii.Error, ValueError):
        raise shapes.ShapeError(path, "must be Base64") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpBody:
    """Body of an ``http`` effect. json, form, text, bytes: at most one of them."""

    method: Annotated[str, method] = "GET"
    url: Annotated[str, shapes.filled]
    query: Annotated[tuple[tuple[str, str], ...], pairs] = ()
    headers: Annotated[tuple[tuple[str, str], ...], headers] = ()
    json: object = ABSENT
    form: Annotated[tuple[tuple[str, str], ...] | Absent, pairs] = ABSENT
    text: Annotated[str | Absent, shapes.text] = ABSENT
    bytes: Annotated[object, base64_bytes] = ABSENT
    timeout_s: Seconds = None
    follow_redirects: Annotated[bool, "followRedirects"] = True
    idempotent: bool = False

    def __post_init__(self) -> None:
        if len(self.forms) > 1:
            raise shapes.ShapeError(
                (), f"{' and '.join(self.forms)} cannot both be the body; give one of them"
            )

    @property
    def forms(self) -> tuple[Form, ...]:
        """Return the forms of content that are set."""
        return tuple(form for form in FORMS if getattr(self, form) is not ABSENT)


def request_of(options: HttpBody) -> HttpRequest:
    """Return the request of a body.

    Raises:
        WebProblem: kind *effect*, or *refused-address* for an address in disguise.
    """
    return HttpRequest(
        method=options.method,
        target=read_target(options.url),
        query=options.query,
        headers=options.headers,
        body=next((Body(form=form, value=getattr(options, form)) for form in options.forms), None),
        follow=options.follow_redirects,
    )
