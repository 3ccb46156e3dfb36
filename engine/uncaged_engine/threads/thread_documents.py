"""JSON document of one thread for its page: status, prompt, question, relatives, and the commands
that can follow; and of two threads side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store

from ..effect_kinds import KNOWN
from ..journal import archive
from ..journal.labels import intended
from ..journal.recover import LIMITS, recover
from ..state import states
from ..state.children import OpenEffect
from ..state.observe import ThreadView, parse_records, summarise, view
from .answering import question, question_number
from .ending import ending_of
from .lean import Excerpt, LeanBlobs
from .parting import Step, common_steps, steps_of
from .rows import RowCount, Words, handler_words

MAX_RELATIVES = 200
MAX_LATER_THREADS = 500
"""How many later threads of the same version are looked at for forks."""

Place = tuple[BundleHash, ThreadId, Path]


def lean_view(store: Store, place: Place) -> ThreadView:
    """Read a thread without its large fields.

    Raises:
        DamagedError: not even its start can be read.
    """
    return view(store, *place, blobs=LeanBlobs(store.blobs))


def lean_records(store: Store, place: Place) -> tuple[list[dict[str, Any]], int]:
    """Return a thread's records from its start on without large fields, and the place in the
    journal at which they end.

    Raises:
        DamagedError: not even its start can be read.
    """
    bundle, thread, path = place
    return lean_records_in(store, bundle, thread, archive.contents(path))


def lean_records_in(
    store: Store, bundle: BundleHash, thread: ThreadId, data: bytes
) -> tuple[list[dict[str, Any]], int]:
    """Do the same for the bytes of a journal."""
    good = recover(data, bundle, thread).good_bytes
    return parse_records(data[:good], LeanBlobs(store.blobs)), good


def thread_document(
    store: Store, place: Place, found: ThreadView, words: Words = handler_words
) -> dict[str, Any]:
    """Return what is shown above a thread's timeline, and its number of rows."""
    excerpt = Excerpt()
    start, summary = found.start, found.summary
    parameters = _mapping(start.get("parameters"))
    rows = RowCount(words)
    for record in found.records:
        rows.add(record)
    ending = ending_of(found, store, Path.cwd())
    return {
        "message": excerpt.text(summary.message, "message"),
        "prompt": excerpt.text(str(parameters.get("prompt") or ""), "prompt"),
        "params": excerpt.of(parameters.get("params"), "params"),
        "limits": limits_of(start, found.records),
        "agents": excerpt.of(start.get("agents"), "agents"),
        "sandbox": str(start.get("sandbox") or ""),
        "workspace": excerpt.of(start.get("workspace"), "workspace"),
        "parent": excerpt.of(start.get("parent"), "parent"),
        "source": excerpt.of(start.get("forkFrom"), "source"),
        "children": list(islice(_children(store, place, found.records), MAX_RELATIVES)),
        "forks": list(islice(_forks(store, place), MAX_RELATIVES)),
        "description": _description(store, place[0]),
        "result": excerpt.of(_mapping(found.end).get("result"), "result"),
        "word": ending.word,
        "ending": excerpt.text(ending.message, "ending"),
        "details": [excerpt.text(line, "details") for line in ending.details],
        "next": list(ending.commands),
        "question": question_document(found, excerpt),
        "can": [event for event in states.COMMANDS if states.allowed(summary.status, event)],
        "rows": rows.number,
        "open": rows.open_step(),
        "cut": excerpt.cut,
    }


def limits_of(start: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return the limits that are set, as later `resume` controls raised them."""
    options = _mapping(_mapping(start.get("parameters")).get("options"))
    found = {name: options[name] for name in LIMITS if name in options}
    for record in records:
        if record.get("control") == "resume":
            found |= {name: record[name] for name in LIMITS if name in record}
    return found


def question_document(found: ThreadView, excerpt: Excerpt) -> dict[str, Any] | None:
    """Return what a waiting thread asks; None for another thread. at: the number of its record,
    which an answer names.
    """
    if found.summary.status != "waiting":
        return None
    asked = question(found.records)
    if asked is None:
        return None
    shown = {
        key: excerpt.of(value, f"question.{key}")
        for key, value in asked.items()
        if key not in ("control", "timestamp", "ranMs")
    }
    return {"at": question_number(found.records), **shown}


def answer_after(records: Sequence[Mapping[str, Any]], at: int) -> Mapping[str, Any] | None:
    """Return the record that answered the question at record *at*; None without one."""
    for record in records[at:]:
        match record.get("control"):
            case "answer":
                return record
            case "wait":
                return None
            case _:
                pass
    return None


def comparison_document(
    threads: Sequence[tuple[ThreadView, list[Step]]],
) -> dict[str, Any]:
    """Return where two threads part: the number of equal steps, the details of the later ones by
    thread, and the ends.
    """
    together = common_steps([steps for _, steps in threads])
    ids = [found.summary.thread_id for found, _ in threads]
    return {
        "together": together,
        "futures": {
            one: [row.detail for _, row in steps[together:]]
            for one, (_, steps) in zip(ids, threads, strict=True)
        },
        "ends": {
            one: None
            if found.end is None
            else {key: value for key, value in found.end.items() if key != "chain"}
            for one, (found, _) in zip(ids, threads, strict=True)
        },
    }


def sides_document(views: Sequence[ThreadView], words: Words = handler_words) -> dict[str, Any]:
    """Return two threads side by side: pairs of steps by number, those that are equal first.

    Each step is ``{"seq", "mark", "label", "detail", "by", "tookMs"}``, or None behind a thread's
    last one.
    """
    excerpt = Excerpt()
    steps = [steps_of(found) for found in views]
    together = common_steps(steps)
    rows = [_step_rows(found, words) for found in views]
    pairs = list(zip_longest(*rows))
    return {
        "together": together,
        "threads": [
            {
                "threadId": found.summary.thread_id,
                "flow": found.summary.name,
                "hash": found.summary.hash,
                "status": found.summary.status,
                "message": excerpt.text(found.summary.message, "message"),
                "steps": found.summary.steps,
            }
            for found in views
        ],
        "pairs": [list(pair) for pair in pairs],
    }


def _step_rows(found: ThreadView, words: Words) -> list[dict[str, object]]:
    rows, steps = RowCount(words), []
    for record in found.records:
        row = rows.add(record)
        if row is not None and "sub" not in record and row["mark"] in ("done", "failed"):
            steps.append(row)
    return steps


def _children(
    store: Store, place: Place, records: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, object]]:
    """Yield the threads that steps of this thread started."""
    seen: set[ThreadId] = set()
    for record in records:
        if "intent" not in record:
            continue
        kind, body = intended(record["intent"])
        effect = OpenEffect(
            store=store, thread=place[1], seq=record["seq"], intended_ms=record["timestamp"]
        )
        for child in effect.children(kind, body):
            if child not in seen and (relative := _relative(store, child)) is not None:
                seen.add(child)
                yield {**relative, "seq": record["seq"]}


def _forks(store: Store, place: Place) -> Iterator[dict[str, object]]:
    """Yield the forks among the later threads of the same version."""
    bundle, thread, path = place
    mark = b'"forkFrom":{"threadId":"%b"' % thread.encode()
    later = sorted(
        name.partition(".")[0]
        for name in (entry.name for entry in path.parent.iterdir())
        if ".data.jsonl" in name and ".torn" not in name and name[:26] > thread
    )
    for name in list(dict.fromkeys(later))[:MAX_LATER_THREADS]:
        other = ThreadId(name)
        try:
            is_fork = mark in archive.first_line(store.data_path(bundle, other))
        except (UncagedError, OSError):
            continue
        if is_fork and (relative := _relative(store, other)) is not None:
            yield relative


def _relative(store: Store, thread: ThreadId) -> dict[str, object] | None:
    try:
        summary = summarise(store, *store.locate_thread(thread))
    except UncagedError:
        return None  # it was never started, or was removed
    return {"threadId": thread, "flow": summary.name, "status": summary.status}


def _description(store: Store, bundle: BundleHash) -> str:
    try:
        return store.load_descriptor(bundle, KNOWN).description
    except UncagedError:
        return ""  # the bundle is gone or damaged


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
