"""Shape checks of a journal that comes from elsewhere: the type and range of every field that this
engine reads, line by line.

The table says nothing about which values are used: `origin` leaves out what a stranger must not
choose. A key that is not in the table is not read by this engine. The table with its reasons is in
docs/sandbox.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId, parse_bundle_hash, parse_thread_id
from uncaged_bundles.names import parse_flow_name

from . import lines
from .codec import CodecError, decode
from .recover import LIMITS

MAX_TIMESTAMP_MS = 1 << 48
"""What the time of a thread's id can hold."""
MAX_BLOB_BYTES = 64 << 20
_BLOB = re.compile(r"[0-9a-f]{32}")

Check = Callable[[Any], bool]


def whole(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 53


def number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e15  # type: ignore[operator]  # both compare


def moment(value: object) -> bool:
    return type(value) is int and 0 <= value < MAX_TIMESTAMP_MS


def text(value: object) -> bool:
    return isinstance(value, str)


def mapping(value: object) -> bool:
    return isinstance(value, dict)


def anything(_value: object) -> bool:
    return True


def truth(value: object) -> bool:
    return isinstance(value, bool)


def commit(value: object) -> bool:
    return isinstance(value, str) and lines.COMMIT.fullmatch(value) is not None


def flow_name(value: object) -> bool:
    return isinstance(value, str) and _parses(parse_flow_name, value)


def thread_id(value: object) -> bool:
    return isinstance(value, str) and _parses(parse_thread_id, value)


def effect(value: object) -> bool:
    return isinstance(value, dict) and (
        len(value) == 1 or (set(value) == lines.DIGESTED and DIGESTED(value))
    )


def numbers(value: object) -> bool:
    return isinstance(value, list) and all(map(whole, value))


def usage(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(part, str | bool) or part is None or number(part) for part in value.values()
    )


def one_of(*words: str) -> Check:
    return lambda value: value in words


def shape(required: Mapping[str, Check], optional: Mapping[str, Check]) -> Check:
    """Return a check for a mapping with these keys; further keys are passed over."""

    def fits(value: object) -> bool:
        return isinstance(value, dict) and problem_of(value, required, optional) is None

    return fits


FORK = shape(
    {"threadId": thread_id, "seq": whole},
    {
        "hash": lambda value: text(value) and _parses(parse_bundle_hash, value),
        "chain": text,
        "handedOver": whole,
        "instead": truth,
    },
)
PARENT = shape({"threadId": thread_id, "seq": whole, "depth": whole}, {})
OPTIONS = shape(
    {}, {"startedAt": moment, "seed": whole, "threadId": text, **dict.fromkeys(LIMITS, number)}
)
PARAMETERS = shape({"prompt": text, "params": mapping, "options": OPTIONS}, {})
ERROR = shape(
    {"kind": text, "message": text},
    {"snapshot": commit, "usage": usage, "role": text, "by": text, "calls": whole},
)
SPENT = shape({}, {"usage": usage})
BLOB = shape(
    {
        "field": text,
        "hash": lambda value: text(value) and _BLOB.fullmatch(value) is not None,
        "bytes": whole,
    },
    {},
)

DIGESTED = shape({"kind": text, "digest": text, "bytes": whole, "head": text}, {})

FIELDS: Mapping[lines.Shape, tuple[Mapping[str, Check], Mapping[str, Check]]] = {
    "start": (
        {
            "format": lambda value: value == lines.FORMAT,
            "name": flow_name,
            "hash": text,
            "threadId": text,
            "parameters": PARAMETERS,
        },
        {"engine": text, "python": text, "sandbox": text, "forkFrom": FORK, "parent": PARENT},
    ),
    "intent": ({"seq": whole, "intent": effect}, {}),
    "attempt": (
        {"seq": whole, "attempt": whole},
        {"because": text, "answer": anything, "error": SPENT, "usage": usage},
    ),
    "step": (
        {"seq": whole},
        {
            **{
                "sub": whole,
                "role": text,
                "content": text,
                "meta": anything,
                "by": text,
                "session": text,
                "snapshot": commit,
            },
            **{"usage": usage, "outcome": anything, "error": ERROR},
        },
    ),
    "void": (
        {"seq": whole, "void": one_of("killed", "limit", "environment"), "message": text},
        {"begun": truth, "parts": numbers, "usage": usage},
    ),
    "control": (
        {"control": text},
        {
            "note": text,
            "notified": text,
            "redo": truth,
            "skip": truth,
            "binding": mapping,
            **dict.fromkeys(LIMITS, number),
        },
    ),
    "end": (
        {"end": one_of(*sorted(lines.ENDS))},
        {
            "result": anything,
            "error": ERROR,
            "limit": text,
            "value": number,
            "message": text,
            "usage": usage,
        },
    ),
}
"""For each kind of line the keys that it must have, and those that it may have."""


def check_journal(
    data: bytes, bundle: BundleHash, thread: ThreadId, blobs: Mapping[str, bytes]
) -> None:
    """Check every line of a journal from elsewhere.

    Args:
        blobs: the contents that travel with it, by hash.
    Raises:
        ValueError: a line has not the fields it must have; says the line and the field.
    """
    steps = 0
    source = 0
    for count, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            record = _whole(line, blobs)
            kind, _seq = lines.shape_of(line)
            if problem := problem_of(record, *FIELDS[kind]) or (
                None if moment(record.get("timestamp")) else "timestamp"
            ):
                raise ValueError(
                    f"the field {problem!r} of a line of kind {kind} is missing or not what it can be"
                )
            if (kind == "start") != (count == 1):
                raise ValueError("a start record belongs at the beginning, and nowhere else")
            if kind == "start":
                if (record["hash"], record["threadId"]) != (bundle, thread):
                    raise ValueError("it names another bundle or thread than it is sealed for")
                source = int(record.get("forkFrom", {}).get("seq", 0))
                handed_over = int(record.get("forkFrom", {}).get("handedOver", 0))
                if handed_over > source:
                    raise ValueError("a fork that was handed more steps than it kept")
            steps += kind == "step" and not lines.is_sub_step(line)
        except (ValueError, KeyError) as exc:
            raise ValueError(f"line {count}: {exc}") from exc
    if source > steps:
        raise ValueError(f"line 1: a fork of {source} steps that holds {steps}")


def problem_of(
    record: Mapping[str, object], required: Mapping[str, Check], optional: Mapping[str, Check]
) -> str | None:
    """Return the first key that is missing or not what it can be."""
    for key, check in required.items():
        if key not in record or not check(record[key]):
            return key
    return next(
        (key for key, check in optional.items() if key in record and not check(record[key])), None
    )


def _whole(line: bytes, blobs: Mapping[str, bytes]) -> dict[str, Any]:
    """Return a line's record with its blob put back in."""
    if len(line) > lines.MAX_LINE_BYTES:
        raise ValueError(f"{len(line):,} bytes; a line has at most {lines.MAX_LINE_BYTES:,}")
    record = decode(line)
    if not isinstance(record, dict):
        raise CodecError("a line is a mapping")
    if "blob" not in record:
        return record
    note = record.pop("blob")
    if not BLOB(note) or record.get(note["field"], "") is not None:
        raise ValueError("a note of a blob that names no hash, or no field that is null")
    content = blobs.get(note["hash"])
    if content is None:
        raise ValueError(f"the blob {note['hash']} is not in the archive")
    return {**record, note["field"]: decode(content, max_bytes=MAX_BLOB_BYTES)}


def _parses(parse: Callable[[str], object], value: str) -> bool:
    try:
        parse(value)
    except UncagedError:
        return False
    return True


__all__: Sequence[str] = ("FIELDS", "MAX_BLOB_BYTES", "check_journal")
