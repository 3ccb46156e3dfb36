"""Engine with some safeguards removed, for positive controls: `python -m testbed.patched PATCH,…
MODULE ARGUMENT…`.

A fault test that passes without a safeguard proves nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import runpy
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from uncaged_bundles.storage import registry, store
from uncaged_bundles.validation.validate import Bundle
from uncaged_effects import null
from uncaged_effects.scripting import run
from uncaged_engine.cells import cell
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.door.outcomes import Outcome
from uncaged_engine.journal import file, lock
from uncaged_engine.sandbox import script_start
from uncaged_engine.state.undecided import Doubt
from uncaged_engine.steps import commands, fast_lane, loop
from uncaged_engine.worker import hub


def no_flush() -> None:
    """Flush nothing."""
    os.fdatasync = os.fsync = lambda _fd: None  # type: ignore[assignment]


def no_lock() -> None:
    """Give the journal's lock to every process."""
    lock.take = lambda fd: True  # noqa: ARG005 - the name that it is called with


def no_worker_lock() -> None:
    """Allow several workers of a bundle."""
    fcntl.flock = lambda _fd, _operation: None


def late_intent() -> None:
    """Write the intent after the effect was performed."""
    written = loop._write_intent
    resolve = loop._resolve

    def late(
        effect: loop._Effect, kind: str, body: object, context: loop.LoopContext
    ) -> Generator[commands.Command, Any, Any]:
        if effect.reopened:
            return (yield from resolve(effect, kind, body, context))
        outcome = yield commands.Perform(effect.seq, kind, body, 1, context.now_ms())
        yield from written(effect, kind, context.now_ms(), is_refused=False)
        return outcome

    loop._resolve = late
    setattr(fast_lane.FastLane, "_permitted", lambda _self, _raw: None)  # noqa: B010 - the loop takes all steps


def in_place() -> None:
    """Write files in place, without a rename."""

    def write(path: Path, data: bytes) -> os.stat_result:
        with path.open("wb") as file:
            file.write(data)
        return path.stat()

    setattr(store, "write_atomically", write)  # noqa: B010 - they import it by name
    setattr(registry, "write_atomically", write)  # noqa: B010 - the same


def no_registry_lock() -> None:
    """Let processes change the registry at once."""
    for name in ("locked", "changing"):
        setattr(registry, name, lambda *_arguments, **_named: nullcontext())


def no_ask() -> None:
    """Repeat open effects without a decision."""

    def no_names(self: Doubt, kind: str, body: object, bundle: Bundle) -> Iterator[str]:  # noqa: ARG001 - the method's signature
        return iter(())

    Doubt.names = no_names  # type: ignore[method-assign]


def no_takeover() -> None:
    """Take no worker of a shared store for dead."""
    from uncaged_cluster import dispatching  # 0.5 s, for this patch alone

    setattr(dispatching, "dead_workers", lambda *_arguments, **_named: set())  # noqa: B010 - it imports it by name


def patient_cell() -> None:
    """Let an outcome wait a minute for the bundle's next effect."""
    limits = partial(cell.CellLimits, slow_ms=60_000)
    cell.CellLimits = limits  # type: ignore[assignment, misc]


def slow_batches() -> None:
    """Send followers a batch a second, so that their number depends little on the machine."""
    hub.Hub.__init__.__kwdefaults__["batch_s"] = 1.0  # type: ignore[index]


def flush_each_line() -> None:
    """Flush each line separately."""
    append = file.JournalFile.append

    def flushing(self: file.JournalFile, body: bytes, *, flush: bool = False) -> bytes:  # noqa: ARG001 - the method's signature
        line = append(self, body)
        self.flush()
        return line

    file.JournalFile.append = flushing  # type: ignore[method-assign]


def clock_back() -> None:
    """Set the wall clock back by an hour again and again."""
    now_ns, begin_s = time.time_ns, time.monotonic()
    time.time_ns = lambda: now_ns() - round((time.monotonic() - begin_s) * 10) * 3_600_000_000_000


def no_attempt_line() -> None:
    """Write no attempt line for a repeated effect."""
    resolve = loop._resolve

    def silent(
        effect: loop._Effect, kind: str, body: object, context: loop.LoopContext
    ) -> Generator[commands.Command, Any, Any]:
        steps = resolve(effect, kind, body, context)
        reply: object = None
        while True:
            try:
                command = steps.send(reply)
            except StopIteration as stop:
                return stop.value
            skipped = isinstance(command, commands.Write) and b'"attempt"' in command.body
            reply = None if skipped else (yield command)

    loop._resolve = silent


def bug_in_null() -> None:
    """A null effect that is to fail with "bug" meets a bug of the engine."""
    perform = null.NullHandler.perform

    def failing(self: null.NullHandler, body: object, context: EffectContext) -> Outcome:
        if isinstance(body, dict) and body.get("fail") == "bug":
            raise LookupError("as planned")
        return perform(self, body, context)

    null.NullHandler.perform = failing  # type: ignore[method-assign]


def broken_scratch(step: str, code: int) -> Callable[[], None]:
    """The disk fails while a script's private directory is made, or while the script is written
    into it.
    """

    def patch() -> None:
        make = script_start.private_directory

        def broken() -> Path:
            if step == "mkdir":
                raise OSError(code, os.strerror(code), "/tmp/uncaged-script-x")
            private = make()
            (private / "script.sh").symlink_to(
                "/dev/full" if code == errno.ENOSPC else private / "nowhere" / "script.sh"
            )
            return private

        assert run.private_directory is make  # type: ignore[attr-defined]
        run.private_directory = broken  # type: ignore[attr-defined]

    return patch


PATCHES: dict[str, Callable[[], None]] = {
    "no-flush": no_flush,
    "no-lock": no_lock,
    "no-worker-lock": no_worker_lock,
    "late-intent": late_intent,
    "no-attempt-line": no_attempt_line,
    "no-ask": no_ask,
    "no-takeover": no_takeover,
    "in-place": in_place,
    "scratch-mkdir-EIO": broken_scratch("mkdir", errno.EIO),
    "scratch-mkdir-ENOSPC": broken_scratch("mkdir", errno.ENOSPC),
    "scratch-write-EIO": broken_scratch("write", errno.EIO),
    "scratch-write-ENOSPC": broken_scratch("write", errno.ENOSPC),
    "flush-each-line": flush_each_line,
    "patient-cell": patient_cell,
    "slow-batches": slow_batches,
    "no-registry-lock": no_registry_lock,
    "clock-back": clock_back,
    "bug-in-null": bug_in_null,
}


def main() -> None:
    patches, module, *arguments = sys.argv[1:]
    for patch in patches.split(","):
        PATCHES[patch]()
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
