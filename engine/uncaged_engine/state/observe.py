"""Summaries and views of threads, read from their files. A lock is looked at and never taken."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import DamagedError, NotFoundError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId, thread_created_ms
from uncaged_bundles.records import dataclass, replace
from uncaged_bundles.storage.files import read_range
from uncaged_bundles.storage.store import Store

from ..journal import archive, chain, copied, durable, lines, lock, origin, trouble
from ..journal.blobs import BlobDirectory, Blobs
from ..journal.codec import decode
from ..journal.recover import History, recover
from ..journal.trouble import Trouble
from ..journal.usage import NOTHING, Spent
from .failure import BundleFailure, bundle_failure
from .reason import end_message, reason
from .states import Facts, State, status
from .undecided import undecided

WINDOW_BYTES = 4096
RESUMABLE = frozenset(("killed", "limit"))
"""Ends that `resume` goes on from; the effect that one of them cut off may need a decision."""
GOES_ON = frozenset(("interrupted", "unknown"))
"""Statuses, without a worker, of a thread that the worker which takes it goes on with; it leaves
one that has ended or was stopped.
"""
_TIMESTAMP = b',"timestamp":'


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSummary:
    """One line of a listing.

    steps: finished ones. success: what a completed thread's result says (True if it says nothing),
    None for others.
    agents: the names of the agents that are bound to its roles.
    spent: what it used up, without what a fork inherited. problem: why the thread cannot be read in
    full, if it cannot.
    imported: its first steps were recorded on another machine.
    undecided: effects that may have been performed without an outcome; `resume` needs a decision
    about them, whatever the status is.
    """

    thread_id: ThreadId
    hash: BundleHash
    name: str
    status: State
    steps: int
    started_ms: int
    updated_ms: int
    message: str
    success: bool | None = None
    spent: Spent = NOTHING
    problem: str | None = None
    imported: bool = False
    undecided: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """Return the thread as a notebook shows it."""
        from uncaged_bundles.notebook import pairs_html  # for notebooks alone

        return pairs_html(
            f"{self.name or 'thread'} {self.thread_id}",
            (
                ("status", "unsuccessful" if self.success is False else self.status),
                ("steps", self.steps),
                ("took", f"{max(0, self.updated_ms - self.started_ms) / 1000:.1f} s"),
                ("tokens", self.spent.tokens or ""),
                ("cost", f"${self.spent.cost:.4f}" if self.spent.cost else ""),
                ("message", self.problem or self.message),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadView:
    """A thread in full.

    start: the start record as this machine uses it: of an imported thread without what a stranger
    bound (``origin``).
    records: its journal's lines after the start record, in order, without their chains. spent: what
    agents and models used up in it, without inherited_spent, which a fork copied from its source.
    failure: why its bundle raised, if that ended it.
    ran_ms: how long it ran, up to its last line.
    copied: a copy of a store brought it, and no worker has taken it up here; only a person's
    request does that.
    """

    summary: ThreadSummary
    start: Mapping[str, Any]
    records: list[dict[str, Any]]
    end: Mapping[str, Any] | None
    spent: Spent = NOTHING
    inherited_spent: Spent = NOTHING
    failure: BundleFailure | None = None
    ran_ms: int = 0
    copied: bool = False

    def _repr_html_(self) -> str:
        """Return the thread as a notebook shows it."""
        return self.summary._repr_html_()

    @property
    def unbound(self) -> bool:
        """Whether it was imported and nothing of this machine was bound to it yet."""
        imported = self.start.get("imported")
        return isinstance(imported, Mapping) and not imported["bound"]


def summarise(
    store: Store, bundle: BundleHash, thread: ThreadId, path: Path | str
) -> ThreadSummary:
    """Read just enough of a journal to list it: its head, and its last lines.

    Raises:
        NotFoundError: it was removed since it was looked up.
    """
    return read_summary(store, bundle, thread, path)[0]


def summarise_thread(
    store: Store, bundle: BundleHash, thread: ThreadId, *, up_to: int | None = None
) -> ThreadSummary:
    """Do the same for a journal that may be packed by now.

    Args:
        up_to: reads it as if it ended at this place, the end of a line.
    Raises:
        NotFoundError: there is none.
    """
    plain = store.data_path(bundle, thread)
    path = plain if plain.exists() else plain.with_name(plain.name + archive.SUFFIX)
    return read_summary(store, bundle, thread, path, up_to)[0]


def read_start(store: Store, bundle: BundleHash, thread: ThreadId) -> Mapping[str, Any]:
    """Return the start record of a journal; empty if it is packed, removed or damaged."""
    fd = _opened(store.data_path(bundle, thread))
    if fd < 0:
        return {}
    try:
        return _start_of(fd)
    finally:
        os.close(fd)


def read_summary(
    store: Store,
    bundle: BundleHash,
    thread: ThreadId,
    path: Path | str,
    up_to: int | None = None,
) -> tuple[ThreadSummary, bool | None]:
    """Return the same, and what decides it while no process holds the journal's lock. True: the
    journal's bytes alone. False: a handler, the bundle or other threads, too; they say whether a
    person has to decide about an effect. None: it is locked, left in trouble, or unreadable.

    Raises:
        NotFoundError: it was removed since it was looked up.
    """
    summary, is_settled = _summary_of_file(store, bundle, thread, path, up_to)
    if is_imported(path, thread):
        summary = replace(summary, imported=True, agents=())  # a stranger's
    return summary, is_settled


def is_imported(path: Path | str, thread: ThreadId) -> bool:
    """Tell whether another machine wrote the beginning of a journal."""
    directory = os.fspath(path).rpartition("/")[0]
    return os.path.exists(f"{directory}/{thread}{origin.SUFFIX}")  # noqa: PTH110 - a Path costs ten times as much, for each of ten thousand


def _summary_of_file(
    store: Store, bundle: BundleHash, thread: ThreadId, path: Path | str, up_to: int | None
) -> tuple[ThreadSummary, bool | None]:
    try:
        fd = -1 if os.fspath(path).endswith(archive.SUFFIX) else _opened(path)
        if fd < 0:
            data = archive.contents(Path(path))[:up_to]
            history = recover(data, bundle, thread)
            return summary_of(history, store, bundle, thread, data, locked=False), _is_settled(
                history
            )
        try:
            # before its size: a thread that ends in between is not taken for a dead one
            locked = lock.is_held(fd)
            why = None if locked else trouble.find(Path(path))
            size = os.fstat(fd).st_size if up_to is None else up_to
            if why is not None or size <= WINDOW_BYTES:
                size = size if why is None or why.on_disk is None else min(size, why.on_disk)
                data = read_range(fd, 0, size)
                history = recover(data, bundle, thread)
                summary = summary_of(history, store, bundle, thread, data, locked=locked, why=why)
                return summary, None if locked or why is not None else _is_settled(history)
            return _summary_of_tail(store, bundle, thread, fd, size, locked=locked)
        finally:
            os.close(fd)
    except NotFoundError:
        raise
    except (UncagedError, OSError, ValueError, KeyError) as exc:
        return unreadable_summary(bundle, thread, exc), None


def unreadable_summary(bundle: BundleHash, thread: ThreadId, problem: Exception) -> ThreadSummary:
    """Return the summary of a thread of which nothing can be read."""
    started_ms = thread_created_ms(thread)
    return ThreadSummary(
        thread_id=thread,
        hash=bundle,
        name="",
        status="corrupt",
        steps=0,
        started_ms=started_ms,
        updated_ms=started_ms,
        message="",
        problem=str(problem),
    )


def _is_settled(history: History) -> bool:
    """Whether a stopped thread's status depends on nothing else. What an open effect needs depends
    on its handler, the bundle and other threads.
    """
    return history.damage is None and (history.pending is None or not history.pending.doubtful)


def _opened(path: Path | str) -> int:
    """Open the journal for reading; return -1 if it was packed meanwhile, or removed."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1


def view(
    store: Store, bundle: BundleHash, thread: ThreadId, path: Path, blobs: Blobs | None = None
) -> ThreadView:
    """Read the whole of a thread.

    Args:
        blobs: puts back what is in blobs; None: those of the store, in full.
    Raises:
        DamagedError: not even its start can be read.
    """
    # before the bytes: a thread that ends in between is not taken for a dead one
    locked = lock.is_live(archive.plain_of(path))
    found = (
        durable.Durable(data=archive.contents(path), trouble=None) if locked else durable.read(path)
    )
    return view_of(
        recover(found.data, bundle, thread),
        found,
        store,
        (bundle, thread, path),
        locked=locked,
        blobs=blobs,
    )


def view_of(
    history: History,
    found: durable.Durable,
    store: Store,
    place: tuple[BundleHash, ThreadId, Path],
    *,
    locked: bool,
    blobs: Blobs | None = None,
) -> ThreadView:
    """Return the whole of a thread whose journal was read and recovered. blobs: as for `view`."""
    (bundle, thread, path), data = place, found.data
    summary = summary_of(history, store, bundle, thread, data, locked=locked, why=found.trouble)
    records = parse_records(
        data[: history.good_bytes], BlobDirectory(store.blobs) if blobs is None else blobs
    )
    end = (
        None
        if history.end is None
        else next(record for record in reversed(records) if "end" in record)
    )
    elsewhere = origin.ThreadOrigin.of(path)
    return ThreadView(
        summary=summary if elsewhere is None else replace(summary, imported=True),
        start=records[0] if elsewhere is None else elsewhere.start(records[0], history),
        records=records[1:]
        if elsewhere is None
        else [elsewhere.step(record, history) for record in records[1:]],
        end=end,
        spent=history.spent.minus(history.inherited_spent),
        inherited_spent=history.inherited_spent,
        failure=_failure_of(store, bundle, end),
        ran_ms=history.ran_ms,
        copied=copied.is_marked(path),
    )


def _failure_of(
    store: Store, bundle: BundleHash, end: Mapping[str, Any] | None
) -> BundleFailure | None:
    if end is None or end["end"] != "failed":
        return None
    path = store.bundle_path(bundle)
    try:
        source = path.read_bytes()
    except OSError:  # the type and the trace are in the journal
        source = None
    return bundle_failure(end, path.name, source)


def parse_records(data: bytes, blobs: Blobs) -> list[dict[str, Any]]:
    """Return whole sealed lines as records: blobs put back in, chains left out."""
    records = []
    for line in data.split(b"\n")[:-1]:
        record = decode(line)
        if not isinstance(record, dict):
            raise DamagedError(f"a journal line is not a mapping: {line[:80]!r}")
        record.pop("chain", None)
        records.append(blobs.expand_record(record) if "blob" in record else record)
    return records


def step_records(history: History, blobs: Blobs) -> list[dict[str, Any]]:
    """Return the records of all finished steps, in order."""
    return parse_records(b"".join(history.steps), blobs)


def summary_of_lines(
    data: bytes, store: Store, bundle: BundleHash, thread: ThreadId, *, worker: str | None
) -> ThreadSummary | None:
    """Return the summary of a thread of a shared store; None if that takes its bundle, too.

    Args:
        data: the whole lines of its journal. worker: which drives it; empty if it waits for one,
            None if none will drive it.
    """
    history = recover(data, bundle, thread)
    word = status(_facts(history, is_undecided=False), locked=False)
    locked = bool(worker) or (worker is not None and word in GOES_ON)
    is_doubtful = history.pending is not None and history.pending.doubtful
    if is_doubtful and (history.end is not None or not locked):
        return None
    return summary_of(history, store, bundle, thread, data, locked=locked)


def facts_of(history: History, store: Store, bundle: BundleHash, blobs: Blobs) -> Facts:
    return _facts(history, is_undecided=bool(undecided(history, store, bundle, blobs)))


def _facts(history: History, *, is_undecided: bool) -> Facts:
    return Facts(
        end=None if history.end is None else str(history.end["end"]),
        paused=history.paused,
        waiting=history.waiting,
        lacking=history.lacking,
        undecided=is_undecided,
        unsettled=history.unsettled,
        corrupt=history.corrupt,
    )


def summary_of(
    history: History,
    store: Store,
    bundle: BundleHash,
    thread: ThreadId,
    data: bytes,
    *,
    locked: bool,
    why: Trouble | None = None,
) -> ThreadSummary:
    """Return the summary of a journal that was read. why: what its last owner, or a reader, noted
    about the disk.
    """
    names = (
        ()
        if locked and history.end is None
        else undecided(history, store, bundle, BlobDirectory(store.blobs))
    )
    state = status(_facts(history, is_undecided=bool(names)), locked=locked)
    problem = (
        None
        if history.damage is None or history.damage.tail
        else f"line {history.damage.line}: {history.damage.reason}"
    )
    return ThreadSummary(
        thread_id=thread,
        hash=bundle,
        name=str(history.start.get("name", "")),
        status=state,
        steps=len(history.steps),
        started_ms=int(history.start["timestamp"]),
        updated_ms=_last_timestamp(data[: history.good_bytes]),
        message=reason(
            history, state, data, undecided=names, why=why.message if why is not None else ""
        ),
        success=_success(history.end),
        spent=history.spent.minus(history.inherited_spent),
        problem=problem,
        undecided=names,
        agents=agents_of(history.start),
    )


def agents_of(start: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the agents in a start record, each once."""
    return tuple(dict.fromkeys(agents_by_role(start).values()))


def agents_by_role(start: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the agents in a start record by role, "" for the default one."""
    bound = start.get("agents")
    if not isinstance(bound, Mapping):
        return {}
    roles = bound.get("roles")
    agents = {"": bound.get("default"), **(roles if isinstance(roles, Mapping) else {})}
    return {
        str(role): str(agent["name"])
        for role, agent in agents.items()
        if isinstance(agent, Mapping) and "name" in agent
    }


def _last_timestamp(data: bytes) -> int:
    """Return when the last whole line was written, of those that are no notes; the times of the
    files may be another machine's.
    """
    end = data.rfind(b"\n")
    while data.startswith(lines.NOTE, begin := data.rfind(b"\n", 0, end) + 1):
        end = begin - 1
    at = data.rfind(_TIMESTAMP, 0, end)
    return int(data[at + len(_TIMESTAMP) : data.index(b",", at + 1)])


def _success(end: Mapping[str, Any] | None) -> bool | None:
    if end is None or end["end"] != "completed":
        return None
    result = end.get("result")
    return result.get("success") is not False if isinstance(result, dict) else True


def _summary_of_tail(
    store: Store, bundle: BundleHash, thread: ThreadId, fd: int, size: int, *, locked: bool
) -> tuple[ThreadSummary, bool | None]:
    """Summarise from the last lines, and from the whole file only if they are not enough."""
    tail = os.pread(fd, WINDOW_BYTES, size - WINDOW_BYTES)
    summary = summary_of_end(bundle, thread, tail, lambda: _start_of(fd), locked=locked)
    if summary is not None:
        return summary, None if locked else True
    data = os.pread(fd, size, 0)
    history = recover(data, bundle, thread)
    summary = summary_of(history, store, bundle, thread, data, locked=locked)
    return summary, None if locked else _is_settled(history)


def summary_of_end(
    bundle: BundleHash,
    thread: ThreadId,
    tail: bytes,
    start_of: Callable[[], Mapping[str, Any]],
    *,
    locked: bool,
) -> ThreadSummary | None:
    """Return the summary of a thread that ended; None if *tail*, the end of its journal, does not
    say all of it.
    """
    last = _line_start(tail, len(tail))
    if not _ends_settled(tail, last):
        return None
    end = decode(tail[last:-1])
    steps = _last_step(tail, last)
    if (
        not isinstance(end, dict)
        or steps is None
        or (end["end"] in RESUMABLE and not _follows_step(tail, last))
    ):
        return None
    start = start_of()
    return ThreadSummary(
        thread_id=thread,
        hash=bundle,
        name=str(start.get("name", "")),
        status=status(Facts(end=str(end["end"])), locked=locked),
        steps=steps,
        started_ms=thread_created_ms(thread),
        updated_ms=_last_timestamp(tail),
        message=end_message(end),
        success=_success(end),
        spent=NOTHING.plus(end.get("usage")),
        agents=agents_of(start),
    )


def _start_of(fd: int) -> Mapping[str, Any]:
    """Return the start record; empty if there is none."""
    data = os.pread(fd, WINDOW_BYTES, 0)
    if (end := data.find(b"\n")) < 0:
        data = os.pread(fd, lines.MAX_LINE_BYTES, 0)
        end = data.find(b"\n")
    return start_in(data[:end])


def start_in(line: bytes) -> Mapping[str, Any]:
    """Return the start record in the first line of a journal; empty if there is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _ends_settled(tail: bytes, last: int) -> bool:
    """Whether the line at *last* is a whole end record that follows the line before it."""
    before = _line_start(tail, last)
    if not before or not tail.startswith(b'{"end":', last) or not tail.endswith(b"\n"):
        return False
    stated = chain.stated(tail[before:last])
    return stated is not None and chain.check(stated, tail[last:]) is not None


def _follows_step(tail: bytes, last: int) -> bool:
    """Whether only controls are between the line at *last* and a finished step, so that no effect
    was left open.
    """
    while last := _line_start(tail, last):
        shape, _ = lines.shape_of(tail[last : last + 64])
        if shape != "control":
            return shape == "step" and not lines.is_sub_step(tail[last : last + 64])
    return False


def _last_step(tail: bytes, last: int) -> int | None:
    """Return how many steps are finished before the line at *last*; None if the window does not
    show it.
    """
    while last := _line_start(tail, last):
        shape, seq = lines.shape_of(tail[last : last + 64])
        if shape == "step":
            return seq - lines.is_sub_step(tail[last : last + 64])
        if shape == "intent":
            return seq - 1
    return None


def _line_start(tail: bytes, end: int) -> int:
    """Return where the line that ends at *end* begins; 0 if that is before the window."""
    return tail.rfind(b"\n", 0, max(end - 1, 0)) + 1
