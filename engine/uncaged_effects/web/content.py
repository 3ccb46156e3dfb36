"""Conversion of a response body to JSON data, text or Base64 for the journal."""

from __future__ import annotations

import base64
import codecs
import json
import re
from email.message import Message
from typing import Any

from uncaged_engine.services.canonical import MAX_DEPTH, depth, encode

from .credentials import Credentials
from .exchange import HttpResponse

TEXTUAL = re.compile(
    r"text/.*|.*\+(json|xml|yaml)|application/(json|xml|javascript|ecmascript|x-javascript|x-www-form-urlencoded|x-ndjson|jsonl|yaml|x-yaml|toml|sql|graphql)"
)
JSON = re.compile(r"(application|text)/(.*\+)?json")
UNFIT = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape"})
"""Codecs of Python that the web does not use; some take minutes for a megabyte."""


def media_type(response: HttpResponse) -> tuple[str, str]:
    """Return the media type of a response and its charset; each may be empty."""
    message = Message()
    message["content-type"] = response.headers.get("content-type", "")
    if not message["content-type"]:
        return "", ""
    return message.get_content_type(), str(message.get_param("charset") or "")


def content_of(response: HttpResponse, credentials: Credentials) -> dict[str, Any]:
    """Return ``{"json"}``, ``{"text"}`` or ``{"base64"}`` with secrets redacted."""
    kind, charset = media_type(response)
    if JSON.fullmatch(kind) and not response.truncated:
        found = parse_json(response.body)
        if found is not None:
            return {"json": credentials.redact(found[0])}
    text = decode_text(response.body, charset, certain=TEXTUAL.fullmatch(kind) is not None)
    if text is None:
        return {"base64": base64.b64encode(credentials.redact_bytes(response.body)).decode("ascii")}
    return {"text": credentials.redact(text)}


def parse_json(body: bytes) -> tuple[Any] | None:
    """Parse JSON that the journal can hold unchanged; None if it is invalid, too deep, or has
    numbers out of range.
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
"""Levels of nesting left for an outcome around the data, and for a bundle that passes it on."""


def decode_text(body: bytes, charset: str, *, certain: bool) -> str | None:
    """Decode the text of a body; None if it is no text. certain: its media type is text, so
    invalid bytes are replaced.
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
    except (UnicodeError, LookupError):  # not text, or a codec from bytes to bytes
        return None
    if not certain and "\0" in text:
        return None
    return text.encode("utf-8", "replace").decode()
