"""The bytes of an answer become what a journal can hold: JSON data, text, or Base64."""

from __future__ import annotations

import base64
import codecs
import json
import re
from email.message import Message
from typing import Any

from uncaged_engine.services.journal import MAX_DEPTH, depth, encode

from .credentials import Credentials
from .exchange import Received

TEXTUAL = re.compile(
    r"text/.*|.*\+(json|xml|yaml)|application/(json|xml|javascript|ecmascript|x-javascript|x-www-form-urlencoded|x-ndjson|jsonl|yaml|x-yaml|toml|sql|graphql)"
)
JSON = re.compile(r"(application|text)/(.*\+)?json")
UNFIT = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape"})
"""Encodings of Python that are none of the web; some take minutes for a megabyte."""


def kind_of(received: Received) -> tuple[str, str]:
    """The media type of a body and the charset that it names; each may be empty."""
    message = Message()
    message["content-type"] = received.headers.get("content-type", "")
    if not message["content-type"]:
        return "", ""
    return message.get_content_type(), str(message.get_param("charset") or "")


def content_of(received: Received, credentials: Credentials) -> dict[str, Any]:
    """One of ``{"json"}``, ``{"text"}`` and ``{"base64"}``, without any secret in it."""
    kind, charset = kind_of(received)
    if JSON.fullmatch(kind) and not received.truncated:
        found = parsed(received.body)
        if found is not None:
            return {"json": credentials.redact(found[0])}
    text = decoded(received.body, charset, certain=TEXTUAL.fullmatch(kind) is not None)
    if text is None:
        return {"base64": base64.b64encode(credentials.redact_bytes(received.body)).decode("ascii")}
    return {"text": credentials.redact(text)}


def parsed(body: bytes) -> tuple[Any] | None:
    """JSON that the journal can hold as it is; None for what is no JSON, too deep, or has numbers
    beyond all bounds.
    """
    try:
        value = json.loads(body)
        encode(value).encode()
    except (ValueError, RecursionError):
        return None
    if (
        body.count(b"[") + body.count(b"{") > MAX_DEPTH - HEADROOM
        and depth(value) > MAX_DEPTH - HEADROOM
    ):
        return None
    return (value,)


HEADROOM = 8
"""Levels that are left for what stands around the data, in an outcome and in a bundle that passes
it on.
"""


def decoded(body: bytes, charset: str, *, certain: bool) -> str | None:
    """The text of a body; None if it is none. certain: it says that it is, and is read even where
    single bytes make no sense.
    """
    try:
        name = codecs.lookup(charset or "utf-8").name
    except LookupError:
        name = "utf-8"
    if name in UNFIT:
        name = "utf-8"
    try:
        text = body.decode(
            "utf-8-sig" if name == "utf-8" else name, "replace" if certain else "strict"
        )
    except (UnicodeError, LookupError):  # not text, or an encoding of bytes as bytes
        return None
    if not certain and "\0" in text:
        return None
    return text.encode("utf-8", "replace").decode()
