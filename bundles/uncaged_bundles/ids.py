"""Ids of bundles and threads, each with one canonical spelling.

Bundle hashes are XXH64 (seed 0) and thread ids are ULIDs; both are in Crockford Base32, most
significant digit first, padded with leading zeros. Reading ignores case and nothing else: I, L, O
and U are not digits here.
"""

from __future__ import annotations

import re
from typing import NewType

import xxhash

from .errors import UsageError

BundleHash = NewType("BundleHash", str)
ThreadId = NewType("ThreadId", str)

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
HASH_LENGTH = 13
THREAD_ID_LENGTH = 26
ENTROPY_BYTES = 10
_TIME_LENGTH = 10
_TIME_BITS = 48
_PYTHONS = dict(
    zip(
        ALPHABET + ALPHABET.lower(),
        "0123456789abcdefghijklmnopqrstuv0123456789abcdefghijklmnopqrstuv",
        strict=True,
    )
)
_DIGITS = bytes(ord(_PYTHONS.get(chr(byte), ".")) for byte in range(256))
"""Our digits as Python spells those of base 32, and a full stop for every other byte."""
_PAIRS = tuple(high + low for high in ALPHABET for low in ALPHABET)
_SHOWN_CHARACTERS = 80
_HASH = re.compile(r"[0-9A-F][0-9A-HJKMNP-TV-Z]{12}")
_THREAD_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def bundle_hash(source: bytes) -> BundleHash:
    """Return the hash of a bundle's bytes."""
    return BundleHash(encode_crockford(xxhash.xxh64_intdigest(source), HASH_LENGTH))


def parse_bundle_hash(text: str) -> BundleHash:
    """Return the canonical spelling of a bundle hash.

    Raises:
        UsageError: *text* is none.
    """
    return BundleHash(_parse_id(text, HASH_LENGTH, bits=64, what="bundle hash"))


def parse_thread_id(text: str) -> ThreadId:
    """Return the canonical spelling of a thread id.

    Raises:
        UsageError: *text* is none.
    """
    return ThreadId(_parse_id(text, THREAD_ID_LENGTH, bits=128, what="thread id"))


def is_bundle_hash(text: str) -> bool:
    """Tell whether *text* is a bundle hash in its canonical spelling."""
    return _HASH.fullmatch(text) is not None


def is_thread_id(text: str) -> bool:
    """Tell whether *text* is a thread id in its canonical spelling."""
    return _THREAD_ID.fullmatch(text) is not None


def new_thread_id(now_ms: int, entropy: bytes) -> ThreadId:
    """Return a ULID of this millisecond and these 10 random bytes; ids of later milliseconds sort
    after it.
    """
    if not 0 <= now_ms < 1 << _TIME_BITS:
        raise ValueError(f"no thread id for millisecond {now_ms!r}: outside 48 bits")
    if len(entropy) != ENTROPY_BYTES:
        raise ValueError(f"a thread id takes {ENTROPY_BYTES} bytes of entropy, not {len(entropy)}")
    return ThreadId(encode_crockford(now_ms << 80 | int.from_bytes(entropy), THREAD_ID_LENGTH))


def thread_created_ms(thread_id: ThreadId) -> int:
    """Return the creation time of a thread from its id."""
    return decode_crockford(thread_id[:_TIME_LENGTH])


def base32_bytes(data: bytes) -> str:
    """Return *data* as one number in Crockford Base32: ceil(bits / 5) digits."""
    return encode_crockford(int.from_bytes(data), (len(data) * 8 + 4) // 5)


def encode_crockford(number: int, length: int) -> str:
    """Return *number* in exactly *length* digits."""
    if number < 0 or number >> (5 * length):
        raise ValueError(f"{number!r} does not fit {length} digits")
    pairs = [_PAIRS[number >> shift & 1023] for shift in range(10 * (length // 2) - 10, -1, -10)]
    return (ALPHABET[number >> 5 * (length - 1)] if length % 2 else "") + "".join(pairs)


def decode_crockford(text: str) -> int:
    """Return the number that *text* has in Base32, in any case.

    Raises:
        UsageError: it has another character.
    """
    try:
        return int(text.encode().translate(_DIGITS), 32) if text else 0
    except ValueError:
        foreign = next(character for character in text if character not in _PYTHONS)
        raise UsageError(
            f"{text[:_SHOWN_CHARACTERS]!r} is not Crockford Base32: {foreign!r} is not one of {ALPHABET}"
        ) from None


def _parse_id(text: str, length: int, *, bits: int, what: str) -> str:
    if len(text) != length:
        raise UsageError(
            f"{text[:_SHOWN_CHARACTERS]!r} is not a {what}: it has {len(text)} characters, a {what} has {length}"
        )
    if decode_crockford(text) >> bits:
        raise UsageError(
            f"{text!r} is not a {what}: {text[0]!r} at its start makes it larger than {bits} bits"
        )
    return text.upper()
