"""Run of a flow on a shared store: a worker on any machine drives the thread, and this command
follows it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from uncaged_bundles.errors import StorageError

from .display import json_output
from .display.output import PROGRAM, next_step, note, result
from .display.plain import FollowedRecord
from .display.step_labels import add_record
from .entry import EXIT_INTERRUPTED
from .inputs.parameters import gather

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from uncaged_bundles.ids import BundleHash, ThreadId
    from uncaged_engine.api import RunOptions
    from uncaged_engine.shared.dispatch import Dispatcher
    from uncaged_engine.shared.replica import Replica

COPY = "./copy"
"""Directory that the next steps name."""


def run_shared(
    address: str,
    flow: str,
    *,
    prompt: str,
    params_file: Path | None,
    pairs: tuple[str, ...],
    options: RunOptions,
    detach: bool,
    as_json: bool,
    verbose: bool,
) -> int:
    """Start a thread in the store at *address* and follow it, unless *detach*; return the exit
    code.
    """
    from uncaged_bundles.storage.store import Store
    from uncaged_engine.shared.opening import opened_shared
    from uncaged_engine.shared.replica import replica
    from uncaged_engine.shared.starting import start_shared
    from uncaged_engine.threads.starting import Chance

    chance = Chance()
    with (
        opened_shared(address) as (backend, dispatcher),
        replica(backend, Store.open(), chance) as copies,
    ):
        parameters = copies.bundle(copies.resolve(flow)[1]).descriptor.parameters
        bundle, thread = start_shared(
            copies,
            dispatcher,
            flow,
            prompt=prompt,
            params=gather(params_file, pairs, parameters),
            options=options,
            chance=chance,
        )
        if not detach:
            return _follow(copies, dispatcher, (bundle, thread), as_json=as_json, verbose=verbose)
    if as_json:
        json_output.document({"threadId": thread, "hash": bundle})
    else:
        result(thread)
    return 0


def _follow(
    copies: Replica,
    dispatcher: Dispatcher,
    place: tuple[BundleHash, ThreadId],
    *,
    as_json: bool,
    verbose: bool,
) -> int:
    """Show a thread until it is left; return the exit code for its result."""
    from uncaged_engine.shared.following import follow_shared, view_shared
    from uncaged_engine.threads.ending import ending_of
    from uncaged_engine.threads.timeline import Timeline

    from .display.follow import choose_view, summary_of

    timeline = Timeline()
    try:
        with choose_view(as_json=as_json, verbose=verbose) as shown:
            events = follow_shared(
                copies, dispatcher, *place, still_waits=lambda: _say_it_waits(copies)
            )
            for event in events:
                if "format" in event.body:
                    shown.start(event.body)
                    continue
                row = add_record(timeline, event.body)
                shown.record(FollowedRecord(record=event.body, row=row, open=timeline.open))
            final = view_shared(copies, *place)
            last = ending_of(final, copies.files, Path.cwd())
            copied = tuple(commands_in_copy(copies.backend.address, last.commands))
            shown.end(replace(last, commands=copied), summary_of(final))
        return last.exit_code
    except StorageError as exc:
        raise StorageError(
            f"thread {place[1]} stays in the store, where a worker drives it, and cannot be followed: {exc}"
        ) from exc
    except KeyboardInterrupt:
        note(f"\nthread {place[1]} stays in the store, where a worker drives it")
        look = f"{PROGRAM} thread {place[1]}"
        for command in commands_in_copy(copies.backend.address, [look]):
            next_step(command)
        return EXIT_INTERRUPTED


def commands_in_copy(address: str, commands: Sequence[str]) -> Iterator[str]:
    """Yield *commands*, made for a thread of a directory, as those for a copy of the shared store,
    after the command that makes the copy.
    """
    if commands:
        yield f"{PROGRAM} store copy {quote(address)} {COPY}"
    for command in commands:
        yield f"UNCAGED_WORKFLOW_HOME={COPY} {command}"


def _say_it_waits(copies: Replica) -> None:
    command = f"{PROGRAM} work --store {quote(copies.backend.address)}"
    note(
        f"no effect of the thread has begun yet; if no worker runs, `{command}` makes this machine one"
    )
