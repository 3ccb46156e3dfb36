"""Canonical JSON: the text that `encode` writes is the only one that `decode` accepts.

Encoding the decoded value again and comparing the text refuses, in C: duplicate keys, NaN and
infinities, lone surrogates, white space, numbers in another spelling. Size and depth are checked
besides.
"""

from __future__ import annotations

import json
from _json import encode_basestring, make_encoder, make_scanner

MAX_BYTES = 8 << 20
MAX_DEPTH = 64

# `json` makes both anew for each call with these arguments; every step encodes and decodes
_scan = make_scanner(json.JSONDecoder())  # type: ignore[arg-type]  # any object with a decoder's attributes will do
_pieces = make_encoder(
    None, json.JSONEncoder().default, encode_basestring, None, ":", ",", False, False, False
)

_ESCAPED = bytes(range(0x20)) + b'"\\'


class CodecError(ValueError):
    """The bytes are not canonical JSON; the message says why."""


def encode(value: object) -> str:
    """Return the canonical JSON of *value*.

    Raises:
        TypeError, ValueError: it does not consist of JSON values alone.
    """
    return "".join(_pieces(value, 0))


def encode_bytes(value: object) -> bytes:
    """Return the same as UTF-8.

    Raises: as `encode`.
    """
    if type(value) is str:
        # bytes are searched in a third of the time that the encoder takes over characters
        data = value.encode()
        if len(data.translate(None, _ESCAPED)) == len(data):
            return b'"%b"' % data
    return "".join(_pieces(value, 0)).encode()


def decode(raw: bytes, *, max_bytes: int = MAX_BYTES) -> object:
    """Return the value of canonical JSON bytes.

    Raises:
        CodecError: too large, too deep, not UTF-8, not JSON, or spelt in another way than `encode`
            spells it.
    """
    if len(raw) > max_bytes:
        raise CodecError(f"{len(raw)} bytes are more than {max_bytes}")
    try:
        text = raw.decode()
        value = _scan(text, 0)[0]
        again = "".join(_pieces(value, 0))  # as `encode`, without its call
    except RecursionError as exc:
        raise CodecError(f"nested deeper than {MAX_DEPTH}") from exc
    except ValueError as exc:  # UnicodeError and JSONDecodeError are ValueErrors
        raise CodecError(f"not JSON: {exc}") from exc
    except StopIteration as exc:
        raise CodecError(f"not JSON: nothing that can be a value at character {exc.value}") from exc
    if again != text:
        raise CodecError(
            "not canonical JSON (duplicate keys, white space or another spelling of a number or a character)"
        )
    # no value is deeper than it has pairs of brackets: most are not walked
    if (
        len(raw) > 2 * MAX_DEPTH
        and raw.count(b"[") + raw.count(b"{") > MAX_DEPTH
        and depth(value) > MAX_DEPTH
    ):
        raise CodecError(f"nested deeper than {MAX_DEPTH}")
    return value


def depth(value: object) -> int:
    """Return how many containers are nested in one another; 0 for a scalar."""
    # a stack of our own: the value comes from a bundle, and recursion has a limit
    deepest = 0
    pending = [(value, 0)]
    while pending:
        item, level = pending.pop()
        if isinstance(item, dict):
            level += 1
            pending.extend((child, level) for child in item.values())
        elif isinstance(item, list):
            level += 1
            pending.extend((child, level) for child in item)
        deepest = max(deepest, level)
    return deepest
