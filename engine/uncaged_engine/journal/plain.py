"""Reader of the plain steps of a journal: an intent and its outcome in two lines, with neither a
blob, nor usage, nor a running time. Most journals are nearly nothing else, so these lines are read
in a third of the time that `recover` takes for any line.
"""

from __future__ import annotations

# not hashlib: it loads OpenSSL, which costs every start two milliseconds
from _blake2 import blake2b

from uncaged_bundles.records import dataclass

from . import chain, lines

TIMESTAMP = b',"timestamp":'


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainSteps:
    """Plain steps that follow each other, perhaps none. steps: their sealed lines. effects: what
    the effects' digest covers, each with its LF. position: behind the last one. digest: its own.
    """

    steps: list[bytes]
    effects: list[bytes]
    position: int
    digest: bytes


def read_plain_steps(data: bytes, position: int, previous: bytes, seq: int) -> PlainSteps | None:
    """Return the plain steps of a journal from *position* on, up to the first other line; None if
    one of their lines does not follow the line before it.

    Args:
        previous: the digest of the line before. seq: the number of the first step.
    """
    steps: list[bytes] = []
    effects: list[bytes] = []
    written: list[bytes] = []
    digests: list[bytes] = []
    find = data.find
    seal, size, digest = chain.SEAL_BYTES, chain.DIGEST_BYTES, previous
    while True:
        middle = find(b"\n", position) + 1
        intent = data[position:middle]
        begin = b'{"seq":%d,"intent":' % seq
        if not middle or not intent.startswith(begin):
            break
        after = find(b"\n", middle) + 1
        step = data[middle:after]
        at = intent.rfind(TIMESTAMP)
        effect = intent[len(begin) : at]
        if (
            not after
            or not step.startswith(b'{"seq":%d,"outcome":' % seq)
            or b'"usage":' in step
            or lines.BLOB_KEY in step
            or lines.BLOB_KEY in intent
            or intent.find(b'"ranMs":', at) >= 0
            or at < 0
            or len(effect) > lines.MARK_BYTES
            or effect.startswith(lines.DIGESTED_HEAD)
        ):
            break
        # as `chain.link`, without its calls
        first = blake2b(digest + intent[:-seal], digest_size=size).digest()
        digest = blake2b(first + step[:-seal], digest_size=size).digest()
        digests += first, digest
        written += intent, step
        steps.append(step)
        effects.append(effect + b"\n")
        position = after
        seq += 1
    if steps and not chain.states(written, digests):
        return None
    return PlainSteps(steps=steps, effects=effects, position=position, digest=digest)
