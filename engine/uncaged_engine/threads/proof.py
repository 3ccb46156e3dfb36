"""Before a name moves to another version, its past threads tell what that one would have done: nothing is performed, no token spent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from uncaged_bundles.errors import ReplayError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..cells.cell import Cell, CellDied, CellLimits
from ..cells.replay import Differs, Replay
from ..journal import archive
from ..journal.blobs import Blobs
from ..journal.recover import recover
from ..sandbox.mechanism import Mechanism
from .verify import difference_at_the_end


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One past thread against the new version.

    identical: it would have gone the same way to the same end. step: the first difference (0: none, or not a matter of one step).
    recorded, yielded: both sides of it. message: what else is to say.
    """

    thread_id: ThreadId
    steps: int
    identical: bool
    step: int = 0
    recorded: str = ""
    yielded: str = ""
    message: str = ""


class Past(NamedTuple):
    """A thread that was."""

    bundle_hash: BundleHash
    thread_id: ThreadId
    path: Path


def check(
    store: Store, bundle: Bundle, mechanism: Mechanism | None, found: Iterable[tuple[BundleHash, ThreadId, Path]], *, deadline_s: float
) -> list[Checked]:
    """Replay past threads against *bundle*, all in one sandbox process; a thread that ends it gets the next ones a new one."""
    cell: Cell | None = None
    checked = []
    try:
        for slot, past in enumerate(found, start=1):
            if cell is None or not cell.alive:
                cell = Cell.start(bundle, mechanism, limits=CellLimits())
            checked.append(_check_one(Past(*past), store, cell, slot=slot, deadline_s=deadline_s))
    finally:
        if cell is not None:
            cell.close()
    return checked


def _check_one(past: Past, store: Store, cell: Cell, *, slot: int, deadline_s: float) -> Checked:
    bundle_hash, thread, path = past
    steps = 0
    try:
        data = archive.read(path) if archive.is_archived(path) else path.read_bytes()
        history = recover(data, bundle_hash, thread)
        steps = len(history.steps)
        blobs = Blobs(store.blobs)
        replay = Replay(history, blobs.expand_record(history.start), blobs, trusted=False)
        now = replay.run(cell, slot, deadline_s=deadline_s)
        if now is None:
            now = replay.run_slowly(cell, slot, data[: history.good_bytes], deadline_s=deadline_s)
        problem = difference_at_the_end(history, now)
        cell.ask("D", slot, 0, b"", deadline_s=deadline_s)
    except Differs as exc:
        yielded = exc.body.decode() if exc.word == "effect" else f"{exc.word} {exc.body.decode()}"
        recorded = exc.recorded.decode("utf-8", "replace")
        return Checked(thread_id=thread, steps=steps, identical=False, step=exc.step, recorded=recorded, yielded=yielded, message=str(exc))
    except (ReplayError, UncagedError, OSError) as exc:
        return Checked(thread_id=thread, steps=steps, identical=False, message=str(exc))
    except CellDied as died:
        return Checked(thread_id=thread, steps=steps, identical=False, message=f"the bundle gave no answer: {died.reason}: {died.detail}")
    return Checked(thread_id=thread, steps=steps, identical=problem is None, step=steps + 1 if problem else 0, message=problem or "")
