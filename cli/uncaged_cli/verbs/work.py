"""The verb `work`: drives the threads of a shared store on this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import closing, suppress
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, NoReturn

import click
from uncaged_bundles.errors import UncagedError

from ..display.output import Styled, note
from ..display.worker_events import WorkerEvents
from ..entry import EXIT_INTERRUPTED
from ..inputs.options import json_option
from ..inputs.stores import needed_store, shared_option, tell_made

if TYPE_CHECKING:
    from uncaged_bundles.ids import BundleHash, ThreadId
    from uncaged_engine.services.shared import DriveThread, Recorder

DEFAULT_SLOTS = 4


@click.command()
@shared_option
@click.option(
    "--slots",
    type=click.IntRange(1, 1000),
    default=DEFAULT_SLOTS,
    metavar="N",
    show_default=True,
    help="Threads at a time, for each worker of the store; the worker started last sets it.",
)
@click.option(
    "--until-idle", is_flag=True, help="End once no thread of the store runs or waits for a worker."
)
@json_option
def command(*, slots: int, until_idle: bool, as_json: bool) -> int:
    """Make this machine a worker of a shared store: it drives threads that `run --store` starts
    anywhere, and those of workers that died.

    Scripts run in the current directory, with this machine's sandbox and secrets. Ctrl-C takes no
    more threads and ends once those that run are left; a second one ends at once, and other workers
    take them over.

    \b
    Examples:
      uncaged-workflow work --store postgresql://db.example/team
      uncaged-workflow work --store postgresql://db.example/team --slots 8 --until-idle
    """
    from uncaged_bundles.storage.store import Store
    from uncaged_engine.sandbox.mechanism import choose
    from uncaged_engine.services.children import children_in
    from uncaged_engine.services.stores import StoreRefused
    from uncaged_engine.settings.loading import load
    from uncaged_engine.shared.driving import ThreadDriving, worker_place
    from uncaged_engine.shared.opening import opened_shared
    from uncaged_engine.shared.replica import replica
    from uncaged_engine.shipped import add_our_flows
    from uncaged_engine.threads.starting import Chance

    store = Store.open()
    chosen = needed_store(store)
    choose(load(store).sandbox)  # a worker without a sandbox would leave each thread unfinished
    stop = threading.Event()
    events = WorkerEvents(as_json=as_json)
    _end_on_signals(stop, events)
    chance = Chance()
    run_child = children_in(chosen.address, store, chance)
    with (
        opened_shared(chosen.address, is_visible=chosen.is_visible, made=tell_made) as backend,
        closing(backend.dispatcher()) as dispatcher,
        replica(backend, store, chance) as copies,
    ):
        with suppress(StoreRefused):  # a user who may only drive threads
            add_our_flows(copies.registry, chance.clock_ms())
        driving = ThreadDriving(copies, worker_place(chance.clock_ms), events.warned, run_child)
        try:
            dispatcher.work(
                _noted(driving.drive, events),
                driving.steer,
                slots=slots,
                until_idle=until_idle,
                stop=stop,
                started=lambda: events.started(backend.address, slots),
            )
        except UncagedError as exc:
            note(Styled("error: ", "red"), str(exc))
            _leave(exc.exit_code)  # threads that others drive by now must not go on here
        driving.close()
    return 0


def _noted(drive: DriveThread, events: WorkerEvents) -> DriveThread:
    """Return *drive* with an event at the begin and the end of each thread."""

    def noted(bundle: BundleHash, thread: ThreadId, from_line: int, record: Recorder) -> str:
        events.driven(thread)
        word = drive(bundle, thread, from_line, record)
        events.left(thread, word)
        return word

    return noted


def _end_on_signals(stop: threading.Event, events: WorkerEvents) -> None:
    """Set *stop* at the first SIGINT or SIGTERM, and end this process at the second, each with an
    event; at the third without one, since the output may be blocked.
    """
    received: SimpleQueue[int] = SimpleQueue()  # whose `put` may interrupt its own `get`
    numbers = count(1)

    def receive(number: int, _frame: object) -> None:
        if next(numbers) > 2:
            os._exit(EXIT_INTERRUPTED)
        received.put(number)

    def carry_out() -> None:
        received.get()
        with suppress(OSError):
            events.stopping()
        stop.set()  # after the event, which the end of the process would cut off
        received.get()
        with suppress(OSError):
            events.interrupted()
        _leave(EXIT_INTERRUPTED)

    threading.Thread(target=carry_out, name="signals", daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, receive)


def _leave(code: int) -> NoReturn:
    """End this process at once, with all that it drives."""
    sys.stderr.flush()
    os._exit(code)
