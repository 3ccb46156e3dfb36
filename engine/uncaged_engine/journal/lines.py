"""Shapes of a journal's lines: builders and readers, the one module that knows their keys.

Each builder returns an *open* record: UTF-8 JSON without the closing brace, to be sealed by the
chain. The first keys tell the shapes apart, so that a reader can sort lines by their first bytes:

    {"format":1,…            start        {"seq":n,"void":…      void
    {"seq":n,"intent":…      intent       {"control":…           control
    {"seq":n,"attempt":…     attempt      {"end":…               end
    {"seq":n,"role":… | "outcome":… | "error":… | "sub":…        step

A field that is too large for a line is in a blob; the line then has null in its place, and
``"blob":{"field","hash","bytes"}`` before its timestamp.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from .codec import encode, encode_bytes

FORMAT = 1
MAX_LINE_BYTES = 1 << 20
SEAL_ROOM_BYTES = 64
SPILL_BYTES = 512 << 10
"""A field whose JSON is longer than this goes to a blob."""

MARK_BYTES = 4 << 10
"""An effect that is longer is compared by its hash; if it is refused, too, the journal keeps no
more of it than that.
"""
SHOWN_BYTES = 200
BLOB_KEY = b',"blob":{"field":'
BLOB_ROOM_BYTES = 300
"""How a blob note begins, and how far from a line's end at most: a line without these bytes there
names no blob, and is not parsed for one.
"""
DIGESTED = frozenset(("kind", "digest", "bytes", "head"))
"""The keys of an intent that holds a digest. No effect has more than one key."""

DIGESTED_HEAD = b'{"kind":"'
"""How the digest of an effect begins."""

PACK_KEY = "gitPack"
"""Field of a start record's ``workspace``, and of a step beside ``snapshot``: the blob with a pack
of git objects.
"""
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""The full name of a git commit, as a step's snapshot is."""

Shape = Literal["start", "intent", "attempt", "step", "void", "control", "end"]
EndWord = Literal["completed", "failed", "killed", "limit"]
_SHAPES: dict[bytes, Shape] = {
    b'"intent"': "intent",
    b'"attempt"': "attempt",
    b'"void"': "void",
    b'"role"': "step",
    b'"outcome"': "step",
    b'"error"': "step",
    b'"sub"': "step",
}
"""The first key after seq tells the shape."""
END = b'{"end":'
RESUME = b'{"control":"resume"'
"""First bytes of an end, and of the only line that may follow one."""
NOTE = b'{"control":"note"'
"""First bytes of a control that changes no state."""
_NOTED = re.compile(rb'{"control":"note","notified":"([a-z]+)"')
_STATUSES: Mapping[bytes, Literal["failed", "limit", "waiting", "unknown"]] = {
    b'{"end":"failed"': "failed",
    b'{"end":"limit"': "limit",
    b'{"control":"wait"': "waiting",
    b'{"control":"unknown"': "unknown",
}
HEAD_BYTES = 512
"""As much of a journal as names its flow."""
_RAN = re.compile(rb',"timestamp":\d+,"ranMs":(\d+),"chain":"[0-9A-Z]+"\}\n$')
_RAN_BYTES = 120
"""As much of a line's end as holds its timestamp and its running time."""
_FLOW = re.compile(rb'"name":"([^"\\]*)"')
ENDS: frozenset[str] = frozenset(("completed", "failed", "killed", "limit"))


def start(fields: Mapping[str, object], timestamp_ms: int) -> bytes:
    return _open({"format": FORMAT, **fields, "timestamp": timestamp_ms})


def intent(seq: int, effect: bytes, timestamp_ms: int) -> bytes:
    """Build an intent. *effect*: canonical JSON as the bundle's process sent it; a replay compares
    these bytes, so they are not encoded anew.
    """
    return b'{"seq":%d,"intent":%b,"timestamp":%d' % (seq, effect, timestamp_ms)


def attempt(seq: int, number: int, fields: Mapping[str, object], timestamp_ms: int) -> bytes:
    return _open({"seq": seq, "attempt": number, **fields, "timestamp": timestamp_ms})


def step(seq: int, fields: Mapping[str, object], timestamp_ms: int) -> bytes:
    """Build a step. *fields*: the outcome's own keys; `role`, `outcome` or `error` first, since
    readers tell the shape from the first key.
    """
    if len(fields) == 1 and "outcome" in fields:
        # most steps: only the value needs an encoder, and the rest is the same for all
        outcome = encode_bytes(fields["outcome"])
        return b'{"seq":%d,"outcome":%b,"timestamp":%d' % (seq, outcome, timestamp_ms)
    return _open({"seq": seq, **fields, "timestamp": timestamp_ms})


def void(
    seq: int,
    word: str,
    message: str,
    more: Mapping[str, object],
    timestamp_ms: int,
    *,
    begun: bool,
    parts: Sequence[int] = (),
) -> bytes:
    """Build a void. *begun*: the effect may have been performed since a person last decided about
    it; *parts*: which parts of it, if not all.
    """
    which = {"parts": list(parts)} if parts else {}
    return _open(
        {
            "seq": seq,
            "void": word,
            "begun": begun,
            **which,
            "message": message,
            **more,
            "timestamp": timestamp_ms,
        }
    )


def control(word: str, fields: Mapping[str, object], timestamp_ms: int) -> bytes:
    return _open({"control": word, **fields, "timestamp": timestamp_ms})


def notified(status: str, timestamp_ms: int) -> bytes:
    """Build the note that a person is notified of a status."""
    return control("note", {"notified": status}, timestamp_ms)


def end(word: EndWord, fields: Mapping[str, object], timestamp_ms: int) -> bytes:
    return _open({"end": word, **fields, "timestamp": timestamp_ms})


def spill(
    fields: Mapping[str, object], field: str, blob_hash: str, size_bytes: int
) -> dict[str, object]:
    """Return the same fields with *field* replaced by a note of the blob that holds its JSON."""
    return {**fields, field: None, "blob": {"field": field, "hash": blob_hash, "bytes": size_bytes}}


def digested(kind: str, effect: bytes, digest: str) -> dict[str, object]:
    """Return what an intent holds instead of a large effect that is refused."""
    return {
        "kind": kind,
        "digest": digest,
        "bytes": len(effect),
        "head": effect[:SHOWN_BYTES].decode("utf-8", "ignore"),
    }


def digest_of(effect: bytes) -> Mapping[str, object] | None:
    """Return the digest that an intent holds instead of its effect, or None."""
    if not effect.startswith(DIGESTED_HEAD):
        return None
    found = json.loads(effect)
    return found if isinstance(found, dict) and set(found) == DIGESTED else None


def blob_of(line: bytes) -> Mapping[str, object] | None:
    """Return the blob note of a sealed line, or None."""
    if line.rfind(BLOB_KEY, -BLOB_ROOM_BYTES) < 0:
        return None
    note = json.loads(line[:-1]).get("blob")
    return note if isinstance(note, dict) else None


def blob_bytes(line: bytes) -> int:
    """Return the size of the blob that a line names; 0 for none."""
    note = blob_of(line)
    return int(str(note["bytes"])) if note is not None else 0


def blob_mark(blob_hash: str) -> bytes:
    """Return what the digest over all effects covers of an effect that is in a blob."""
    return b"blob:" + blob_hash.encode()


def _open(record: Mapping[str, object]) -> bytes:
    return encode(record)[:-1].encode()


def shape_of(line: bytes) -> tuple[Shape, int]:
    """Sort a sealed line by its first bytes.

    Returns:
        The shape and the seq (0 where the shape has none).
    Raises:
        ValueError: no shape begins like this.
    """
    if line.startswith(b'{"seq":'):
        comma = line.index(b",", 7, 32)
        shape = _SHAPES.get(line[comma + 1 : line.index(b":", comma)])
        if shape is not None:
            return shape, int(line[7:comma])
    elif line.startswith(b'{"control":'):
        return "control", 0
    elif line.startswith(END):
        return "end", 0
    elif line.startswith(b'{"format":'):
        return "start", 0
    raise ValueError(f"no journal line begins like {line[:40]!r}")


def status_of(body: bytes) -> Literal["failed", "limit", "waiting", "unknown"] | None:
    """Return the status that an open record writes, of those that a person may be notified of."""
    return next((word for head, word in _STATUSES.items() if body.startswith(head)), None)


def notified_in(line: bytes) -> str | None:
    """Return the status that a line notes as notified, or None."""
    found = _NOTED.match(line)
    return None if found is None else found[1].decode()


def flow_in(head: bytes) -> str | None:
    """Return the flow's name from the first bytes of a start record, which may be cut off; None if
    it is not in them.
    """
    found = _FLOW.search(head)
    return found[1].decode() if found is not None else None


def is_role_step(line: bytes) -> bool:
    """Tell whether a step line belongs to a role (only those count as rounds)."""
    return key_of_step(line) == b"role"


def is_sub_step(line: bytes) -> bool:
    return key_of_step(line) == b"sub"


def with_running_time(body: bytes, ran_ms: int) -> bytes:
    """Add to an open record how long its thread has run, by a clock that is never set."""
    return b'%b,"ranMs":%d' % (body, ran_ms)


def running_time_of(line: bytes) -> int | None:
    """Return the running time that a sealed line states, or None."""
    found = _RAN.search(line, max(0, len(line) - _RAN_BYTES))
    return None if found is None else int(found[1])


def part_of(line: bytes) -> int:
    """Return the index of a sub-step line's effect within its `all`."""
    at = line.index(b'"sub":', 7) + len(b'"sub":')
    return int(line[at : line.index(b",", at)])


def key_of_step(line: bytes) -> bytes:
    """Return the first key after a step line's seq."""
    head = line.index(b',"', 7) + 2
    return line[head : line.index(b'"', head)]


def effect_of_intent(line: bytes) -> bytes:
    """Return the effect's bytes of a sealed intent line, cut out, not parsed."""
    head = line.index(b'"intent":', 7) + len(b'"intent":')
    return line[head : line.rindex(b',"timestamp":')]
