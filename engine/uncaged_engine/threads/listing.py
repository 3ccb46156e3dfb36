"""Lists of a store's threads, served by its index where that can be, and by the journals everywhere
else.

A list is a view of one moment. What acts on a thread reads its journal.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from dataclasses import asdict, replace

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store, journals_among

from ..journal import origin, trouble
from ..journal.usage import NOTHING, Spent
from ..state import index
from ..state.observe import ThreadSummary, read_summary
from .names import locked_journals, stamp_of_file


def list_threads(store: Store) -> list[ThreadSummary]:
    """Return the summaries of all threads, in no particular order, unreadable ones included."""
    since = index.noted(store)  # before the journals: see `index`
    rows, names = index.rows(store)
    noted = trouble.noted()  # a note may say that less of a journal counts than its file shows
    logs = os.path.realpath(store.logs) if noted else ""
    found: list[ThreadSummary] = []
    fresh: list[tuple[index.Stamp, ThreadSummary, bool]] = []
    unnamed: list[str] = []
    for bundle, files in store.list_logs():
        directory = f"{store.logs}/{bundle}"
        for thread, name in journals_among(files):
            key, path = f"{bundle}/{thread}", f"{directory}/{name}"
            stamp = stamp_of_file(path)  # before the bytes: see `index`
            row = rows.pop(key, None)
            if row is None and key not in names:
                unnamed.append(key)
            names.discard(key)
            is_noted = noted and trouble.name_of(f"{logs}/{bundle}/{name}") in noted
            if (
                row is not None
                and not is_noted
                and stamp == row[1:5]
                and (summary := summary_from(row, bundle, thread)) is not None
            ):
                found.append(
                    replace(summary, imported=True, agents=())
                    if f"{thread}{origin.SUFFIX}" in files
                    else summary
                )
                continue
            with suppress(NotFoundError):  # it was removed since its directory was read
                summary, sure = read_summary(store, bundle, thread, path)
                found.append(summary)
                if sure is not None and stamp is not None:
                    fresh.append((stamp, summary, sure))
    place = None if since is None else since.place
    index.remember(store, fresh, since=place, names=unnamed, gone=rows.keys() | names)
    return found


def running_threads(store: Store) -> list[ThreadSummary]:
    """Return the summaries of the threads that workers drive at this moment; journals of other
    threads are not looked at.
    """
    found = []
    for bundle, thread in locked_journals(store):
        with suppress(NotFoundError):
            found.append(read_summary(store, bundle, thread, store.data_path(bundle, thread))[0])
    return [one for one in found if one.status == "running"]


def summary_from(row: index.Row, bundle: BundleHash, thread: ThreadId) -> ThreadSummary | None:
    """Return the summary that a row keeps; None if it cannot be read."""
    *_, status, flow, agents, steps, started_ms, updated_ms, message, success, usage = row
    spent, names = _spent_of(usage), _agents_of(agents)
    if spent is None or names is None or index.LOST in message or index.LOST in flow:
        return None
    return ThreadSummary(
        thread_id=thread,
        hash=bundle,
        name=flow,
        status=status,
        steps=steps,
        started_ms=started_ms,
        updated_ms=updated_ms,
        message=message,
        success=None if success is None else success != 0,
        spent=spent,
        agents=names,
    )


def _agents_of(text: str) -> tuple[str, ...] | None:
    if not text:
        return ()
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_whole = isinstance(names, list) and all(isinstance(one, str) for one in names)
    return tuple(names) if is_whole else None


def _spent_of(text: str) -> Spent | None:
    if not text:
        return NOTHING
    try:
        spent = Spent(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None
    return (
        spent
        if all(
            isinstance(value, int | float) and math.isfinite(value)
            for value in asdict(spent).values()
        )
        else None
    )
