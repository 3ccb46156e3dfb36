"""Hash chain of a journal: each line ends with a digest over the previous line's digest and its own
text, so that an accident or a careless edit shows.

It is no signature: a program that can write the file can seal it anew. `verify` re-runs the bundle
for that reason.
"""

from __future__ import annotations

# not hashlib: it loads OpenSSL, which costs every start two milliseconds
import re
from _blake2 import blake2b
from collections.abc import Iterable

DIGEST_BYTES = 12
CHAIN_CHARACTERS = 20
KEY = b',"chain":"'
SEAL_BYTES = len(KEY) + CHAIN_CHARACTERS + len(b'"}\n')
ALPHABET = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_DIGITS = bytes(
    b"0123456789abcdefghijklmnopqrstuv"[ALPHABET.find(byte)] if byte in ALPHABET else ord(".")
    for byte in range(256)
)
"""Crockford's digits as Python spells numbers of base 32, and a full stop, which `int` refuses, for
anything else.
"""
_AROUND_DIGITS = KEY + b'"}\n'
_SEALS = re.compile(rb'(?:,"chain":"[%b]{20}"\}\n)+' % ALPHABET)
_LOW = (1 << 30) - 1
# two characters at a time: half the look-ups of one
_PAIRS = [bytes([high, low]) for high in ALPHABET for low in ALPHABET]


def seed(owner: str, name: str) -> bytes:
    """Return the digest before the first line. It has the names in it, so that a file copied to
    another name is not whole. For a journal they are the bundle's hash and the thread's id.
    """
    return bytes(blake2b(f"{owner}/{name}".encode(), digest_size=DIGEST_BYTES).digest())


def conversation_seed(name: str) -> bytes:
    """Return the digest before the first line of a conversation."""
    return seed("conversation", name)


def link(previous: bytes, body: bytes) -> bytes:
    """Return the digest of a line whose text up to ``,"chain"`` is *body*."""
    # one call: half the time of two for a short line
    return blake2b(previous + body, digest_size=DIGEST_BYTES).digest()


def seal(previous: bytes, body: bytes) -> tuple[bytes, bytes]:
    """Close an open record.

    Args:
        body: a JSON object without its closing brace.
    Returns:
        The whole line with its LF, and its digest.
    """
    # as `link`, without its call
    digest = blake2b(previous + body, digest_size=DIGEST_BYTES).digest()
    # twenty characters for 96 bits, the last four of a hundred are zero; integers below 2**30 are
    # shifted in half the time, and this runs for every line
    number = int.from_bytes(digest, "big") << 4
    second, third, fourth = number >> 60 & _LOW, number >> 30 & _LOW, number & _LOW
    pairs = _PAIRS
    line = b"".join(
        (
            body,
            KEY,
            pairs[number >> 90],
            pairs[second >> 20],
            pairs[second >> 10 & 1023],
            pairs[second & 1023],
            pairs[third >> 20],
            pairs[third >> 10 & 1023],
            pairs[third & 1023],
            pairs[fourth >> 20],
            pairs[fourth >> 10 & 1023],
            pairs[fourth & 1023],
            b'"}\n',
        )
    )
    return line, digest


def check(previous: bytes, line: bytes) -> bytes | None:
    """Return the digest of a sealed line, or None if the line does not follow *previous*."""
    if (
        len(line) <= SEAL_BYTES
        or line[-SEAL_BYTES : len(KEY) - SEAL_BYTES] != KEY
        or not line.endswith(b'"}\n')
    ):
        return None
    digest = link(previous, line[:-SEAL_BYTES])
    try:
        # comparing numbers takes half the time of spelling the digest
        number = int(line[-3 - CHAIN_CHARACTERS : -3].translate(_DIGITS), 32)
    except ValueError:
        return None
    return digest if number == int.from_bytes(digest, "big") << 4 else None


def states(lines: Iterable[bytes], digests: Iterable[bytes]) -> bool:
    """Tell whether each sealed line states its digest. One comparison for all of them takes a fifth
    of the time of `check`.
    """
    seals = b"".join([line[-SEAL_BYTES:] for line in lines])
    if _SEALS.fullmatch(seals) is None:
        return False
    # 96 bits and four of zero are twenty digits of base 32, or 25 of base 16
    stated = int(seals.translate(_DIGITS, delete=_AROUND_DIGITS), 32)
    return stated == int(b"".join(digests).hex("0", DIGEST_BYTES) + "0", 16)


def stated(line: bytes) -> bytes | None:
    """Return the digest that a line states for itself, unchecked; None if it states none."""
    text = line[-3 - CHAIN_CHARACTERS : -3]
    if line[-SEAL_BYTES : len(KEY) - SEAL_BYTES] != KEY or len(text) != CHAIN_CHARACTERS:
        return None
    try:
        number = int(text.translate(_DIGITS), 32)
    except ValueError:
        return None
    return (number >> 4).to_bytes(DIGEST_BYTES, "big")


def something_follows(data: bytes, position: int, previous: bytes) -> bool:
    """Tell whether a valid line is behind the first bad one, which is then no torn tail."""
    end = data.find(b"\n", position) + 1
    # a valid line follows some digest: that of the last good line, or one of a damaged line
    before = {previous, *_claims(data[position:end], previous)} if end else set()
    while end:
        after = data.find(b"\n", end) + 1
        if not after:
            return False
        line = data[end:after]
        if any(check(digest, line) for digest in before):
            return True
        before = set(_claims(line, previous))
        end = after
    return False


def _claims(line: bytes, previous: bytes) -> list[bytes]:
    """Return the possible digests before the next line: the one that the damaged line states, and
    the one that its text has.
    """
    if len(line) <= SEAL_BYTES:
        return []
    claimed = stated(line)
    computed = link(previous, line[:-SEAL_BYTES])
    return [computed] if claimed is None else [claimed, computed]
