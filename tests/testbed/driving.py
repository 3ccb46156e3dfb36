"""Driving of threads in the test's own process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from testbed.journals import NOW_MS
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.cells.cell import CellLimits
from uncaged_engine.cells.shared import start_cells
from uncaged_engine.door.effects import EffectContext, Handler
from uncaged_engine.door.outcomes import Outcome
from uncaged_engine.effect_kinds import KNOWN, handler_for
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.settings.loading import load
from uncaged_engine.steps.driver import Driver
from uncaged_engine.steps.request import DriveRequest, WorkerContext


def no_child(context: EffectContext, **_call: object) -> Outcome:
    """Run no flow for an effect (`RunChild`)."""
    raise AssertionError(f"thread {context.thread_id} calls no flow")


def no_driver(_thread: ThreadId) -> str:
    """Return no worker, for any thread."""
    return ""


def driven_here(
    store: Store,
    thread: ThreadId,
    *,
    directory: Path = Path(),
    handlers: Callable[[str], Handler] = handler_for,
) -> bytes:
    """Drive a thread of a directory until it completes, as its worker does; return its journal."""
    bundle, _, path = store.locate_thread(thread)
    loaded = store.load_bundle(bundle, KNOWN)
    with closing(start_cells(loaded, "auto", limits=CellLimits(), begun=None)) as cells:
        driver = Driver(
            thread=thread,
            slot=1,
            journal=JournalFile.open(store, bundle, thread),
            request=DriveRequest(directory=directory),
            config=load(store),
            worker=WorkerContext(
                store=store,
                cells=cells,
                clock_ms=lambda: NOW_MS,
                publish=lambda _thread, _event: None,
                handlers=handlers,
            ),
        )
        with closing(driver):
            assert driver.run() == "completed"
    return path.read_bytes()
