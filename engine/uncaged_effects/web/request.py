"""What a bundle yields under ``http`` is checked whole before anything is resolved or connected."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast
from urllib.parse import urlencode

from uncaged_bundles.urls import Target
from uncaged_engine.services.network import WebProblem, read_target

from .credentials import Credentials

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
REPEATABLE = SAFE | {"PUT", "DELETE"}
"""Doing these twice comes to the same as once."""
KEYS = frozenset({"method", "url", "query", "headers", "json", "form", "text", "bytes", "timeout_s", "followRedirects", "idempotent"})
Form = Literal["json", "form", "text", "bytes"]
FORMS: tuple[Form, ...] = ("json", "form", "text", "bytes")
TYPES: Mapping[Form, str] = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "text": "text/plain; charset=utf-8",
    "bytes": "application/octet-stream",
}
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect", "accept-encoding"}
)
"""Headers that belong to the connection, which the engine makes."""

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What is sent, before its secrets are put in."""

    form: Form
    value: Any

    def bytes_for(self, target: Target, credentials: Credentials) -> bytes:
        match self.form:
            case "json":
                return json.dumps(credentials.put_whole(self.value, target), ensure_ascii=False, separators=(",", ":")).encode()
            case "form":
                return urlencode([(name, credentials.put_whole(value, target)) for name, value in self.value]).encode()
            case "text":
                return str(self.value).encode()
            case "bytes":
                return bytes(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. query: added to the address's own. headers: names as they were given. follow: redirects."""

    method: str
    target: Target
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: Body | None = None
    follow: bool = True

    def has(self, header: str) -> bool:
        return any(name.lower() == header for name, _ in self.headers)

    def with_header(self, name: str, value: str) -> Request:
        return replace(self, headers=(*self.headers, (name, value)))


def read_request(body: object) -> Request:
    """Check the body of an ``http`` effect.

    Raises:
        WebProblem: kind *effect*, or *refused-address* for an address in disguise.
    """
    if not isinstance(body, Mapping):
        raise WebProblem("effect", 'its body must be a mapping with a "url"')
    unknown = sorted(set(body) - KEYS)
    if unknown:
        raise WebProblem("effect", f"unknown key {unknown[0]!r} (known: {', '.join(sorted(KEYS))})")
    method = str(body.get("method", "GET")).upper()
    if method not in METHODS:
        raise WebProblem("effect", f"method must be one of {', '.join(METHODS)}, not {body['method']!r}")
    for key in ("followRedirects", "idempotent"):
        if not isinstance(body.get(key, False), bool):
            raise WebProblem("effect", f"{key} must be true or false, not {body[key]!r}")
    return Request(
        method=method,
        target=read_target(read_url(body)),
        query=tuple(pairs_of(body.get("query", {}), "query")),
        headers=tuple(headers_of(body.get("headers", {}))),
        body=body_of(body),
        follow=cast("bool", body.get("followRedirects", True)),
    )


def read_url(body: Mapping[str, object]) -> str:
    url = body.get("url")
    if not isinstance(url, str) or not url.strip():
        raise WebProblem("effect", "url is missing" if url is None else f"url must be an address such as https://example.com/, not {url!r}")
    return url


def headers_of(value: object) -> Iterator[tuple[str, str]]:
    if not isinstance(value, Mapping):
        raise WebProblem("effect", f"headers must be a mapping of names to texts, not {value!r}")
    for name, text in value.items():
        if not HEADER_NAME.fullmatch(name):
            raise WebProblem("effect", f"headers: {name!r} is no name of a header")
        if name.lower() in OURS or name.lower().startswith("proxy-"):
            raise WebProblem("effect", f"headers: {name} belongs to the connection, which the engine makes; leave it out")
        if not isinstance(text, str):
            raise WebProblem("effect", f"headers: {name} must be text, not {text!r}")
        yield name, text


def header_bytes(name: str, value: str) -> tuple[bytes, bytes]:
    """A header as it is sent, its secrets put in; the message of an error never repeats the value."""
    if any((character < " " and character != "\t") or character == "\x7f" for character in value):
        raise WebProblem("effect", f"headers: the value of {name} holds a line break or another control character")
    try:
        return name.encode("ascii"), value.strip(" \t").encode("latin-1")
    except UnicodeEncodeError:
        raise WebProblem("effect", f"headers: the value of {name} holds characters that no header can; percent-encode them") from None


def pairs_of(value: object, key: str) -> Iterator[tuple[str, str]]:
    """Names with texts; a list stands for the same name several times."""
    if not isinstance(value, Mapping):
        raise WebProblem("effect", f"{key} must be a mapping of names to texts, numbers, truth values or lists of them, not {value!r}")
    for name, given in value.items():
        for one in given if isinstance(given, list) else [given]:
            if not isinstance(one, Scalar):
                raise WebProblem("effect", f"{key}: {name} must be a text, a number, a truth value or a list of them, not {one!r}")
            yield name, one if isinstance(one, str) else json.dumps(one)


def body_of(body: Mapping[str, Any]) -> Body | None:
    given = [form for form in FORMS if form in body]
    if not given:
        return None
    if len(given) > 1:
        raise WebProblem("effect", f"{' and '.join(given)} cannot both be the body; give one of them")
    form = given[0]
    value = body[form]
    match form:
        case "json":
            return Body(form=form, value=value)
        case "form":
            return Body(form=form, value=tuple(pairs_of(value, "form")))
        case "text" if isinstance(value, str):
            return Body(form=form, value=value)
        case "bytes" if isinstance(value, str):
            try:
                return Body(form=form, value=base64.b64decode(value, validate=True))
            except (binascii.Error, ValueError):
                raise WebProblem("effect", "bytes must be Base64") from None
        case _:
            raise WebProblem("effect", f"{form} must be text, not {value!r}")
