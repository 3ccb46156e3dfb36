"""Failed threads of a store that can be fixed: those whose flow was built from a recipe, a script
or a definition, and is the present version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.names import FlowName
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.api import Engine, ThreadSummary, ThreadView
from uncaged_engine.services.registry import KNOWN
from uncaged_engine.services.thread_pages import ThreadFilter, versions_of

from .case import LACKING, FixCase, read_case
from .errors import wrong_example
from .source import source_of

__all__ = [
    "DIRECTORY",
    "ERROR_FILE",
    "FIX_FLOW",
    "FLOW_FILE",
    "PAGE_FILE",
    "FailedThread",
    "directory_of",
    "failed_thread",
    "files_of",
    "has_wrong_result",
    "successes",
]

FLOW_FILE = "flow.json"
ERROR_FILE = "error.txt"
PAGE_FILE = "page.json"
DIRECTORY = "directory: "
"""Begin of the line of the error file that names the caller's directory."""
FIX_FLOW = "fix-flow"
MAX_TEXT = 20_000
"""Characters of a text in a journal that a file keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedThread:
    """A failed thread of the present version of a flow. records: with the start record first;
    before: those of the flow's last thread with success, none without one.
    """

    id: ThreadId
    flow: FlowName
    bundle: Bundle
    case: FixCase
    records: Sequence[Mapping[str, Any]]
    before: Sequence[Mapping[str, Any]]


def failed_thread(engine: Engine, text: str) -> FailedThread:
    """Read a failed thread; *text* is an id, a unique prefix of one, or ``latest``. For a thread
    that fixes another one, that one is read.

    Raises:
        RefusedError: it did not fail, its flow has another version by now, or its source is not
            kept; the message has the next step.
    """
    view = engine.thread(text)
    if view.summary.name == FIX_FLOW:  # `latest` after a fix
        view = engine.thread(str(view.start["parameters"]["params"]["thread"]))
    summary = view.summary
    if not (_has_failed(view) or _lacks(view) or has_wrong_result(engine, view)):
        state = "has success" if summary.status == "completed" else f"is {summary.status}"
        raise RefusedError(f"thread {summary.thread_id} {state}; only a failed thread is fixed")
    if summary.imported:
        raise RefusedError(
            f"thread {summary.thread_id} is imported: its journal is not this machine's; run the flow here first"
        )
    named = engine.registry.flow(summary.name)
    if named is None:
        raise RefusedError(
            f"thread {summary.thread_id} ran {summary.name!r}, which is no flow any more"
        )
    if named.hash != summary.hash:
        raise RefusedError(
            f"{named.name} is {named.hash} by now, thread {summary.thread_id} ran {summary.hash};"
            f" see whether that one works: uncaged-workflow run {named.name}"
        )
    bundle = engine.store.load_bundle(named.hash, KNOWN)
    records = [dict(view.start), *view.records]
    before = _last_success(engine, named.name, summary.thread_id)
    return FailedThread(
        id=summary.thread_id,
        flow=named.name,
        bundle=bundle,
        case=read_case(source_of(bundle), records, before),
        records=records,
        before=before,
    )


def directory_of(engine: Engine, directory: Path) -> Path | None:
    """Return the directory to which relative paths belong: the caller's; None for that of the
    worker, on which it depends in a shared store.
    """
    return None if engine.is_shared else directory


def files_of(
    failed: FailedThread, directory: Path | None, page: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Return the files of the scratch repository, by name.

    Args:
        directory: as `directory_of` says. page: what a web flow finds
            on its page by now, None if it was not looked at.
    """
    case = failed.case
    lines = [
        f"flow: {failed.flow}@{failed.bundle.hash}",
        f"thread: {failed.id}",
        *(() if directory is None else (f"{DIRECTORY}{directory}",)),
        f"step: {case.place}",
        f"error: {case.word}",
        f"cause: {case.cause}",
    ]
    files = {
        FLOW_FILE: json.dumps(case.recipe, indent=2, ensure_ascii=False) + "\n",
        "journal.jsonl": _journal(failed.records),
        ERROR_FILE: "\n".join(lines) + "\n",
    }
    if page is not None:
        files[PAGE_FILE] = json.dumps(page, indent=2, ensure_ascii=False) + "\n"
    return {**files, "success.jsonl": _journal(failed.before)} if failed.before else files


def _journal(records: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(_shortened(one), ensure_ascii=False)}\n" for one in records)


def _shortened(value: Any) -> Any:
    match value:
        case str() if len(value) > MAX_TEXT:
            return f"{value[:MAX_TEXT]}… ({len(value):,} characters)"
        case Mapping():
            return {key: _shortened(one) for key, one in value.items()}
        case list():
            return [_shortened(one) for one in value]
        case _:
            return value


def _has_failed(view: ThreadView) -> bool:
    summary = view.summary
    return summary.status == "failed" or (
        summary.status == "completed" and summary.success is False
    )


def has_wrong_result(engine: Engine, view: ThreadView) -> bool:
    """Whether the result of a thread with success is not what an example of its flow expects."""
    if view.summary.status != "completed" or view.end is None:
        return False
    descriptor = engine.store.load_descriptor(view.summary.hash, KNOWN)
    return wrong_example(descriptor.raw.get("examples"), view.start, view.end) is not None


def _lacks(view: ThreadView) -> bool:
    """Whether the thread is paused because the machine lacks something."""
    last = view.records[-1] if view.records else {}
    return view.summary.status == "paused" and last.get("void") == LACKING


def _last_success(engine: Engine, flow: str, failed: ThreadId) -> Sequence[Mapping[str, Any]]:
    """Return the records of the last thread of a flow with success, the start record first."""
    for one in successes(engine, flow):
        if one.thread_id == failed:
            continue
        view = engine.thread(one.thread_id)
        if not has_wrong_result(engine, view):
            return [dict(view.start), *view.records]
    return ()


def successes(engine: Engine, flow: str) -> Iterator[ThreadSummary]:
    """Yield the threads of a flow with success, those started last first, without imported ones."""
    name, versions = versions_of(engine.registry, flow)
    wanted = ThreadFilter(statuses=("completed",), flow=name, versions=versions)
    before = None
    while True:
        page = engine.page(wanted, before=before)
        yield from (one for one in page.threads if one.success and not one.imported)
        if (before := page.before) is None:
            return
