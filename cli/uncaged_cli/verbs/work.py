"""The verb `work`: drives the threads of a shared store on this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, NoReturn

import click
from uncaged_bundles.errors import StorageError, UncagedError, UsageError

from ..display import json_output
from ..display.output import Styled, note, result
from ..display.worker_events import WorkerEvents
from ..entry import EXIT_INTERRUPTED
from ..inputs.options import json_option
from ..inputs.stores import needed_store, shared_option, tell_made
from ..worker_offers import note_unknown, offer_of, workers_named
from ..worker_renewal import Renewal

if TYPE_CHECKING:
    from uncaged_bundles.ids import BundleHash, ThreadId
    from uncaged_bundles.storage.store import Store
    from uncaged_engine.services.settings import Config
    from uncaged_engine.services.shared import DriveThread, LeaveThreads, Recorder

DEFAULT_SLOTS = 4


@click.command()
@shared_option
@click.option(
    "--slots",
    type=click.IntRange(1, 1000),
    default=DEFAULT_SLOTS,
    metavar="N",
    show_default=True,
    help="Threads that this worker drives at a time.",
)
@click.option(
    "--flows",
    multiple=True,
    metavar="NAME,…",
    help="Take threads of these flows only. May be repeated.",
)
@click.option(
    "--offers",
    multiple=True,
    metavar="NAME,…",
    help="Offer this besides the browser, agents and MCP servers of this machine; `none` leaves those out. For `queue set FLOW --needs`.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Where Restate reaches this worker, for a store whose threads it runs. Without it: any port of loopback.",
)
@click.option(
    "--until-idle",
    is_flag=True,
    help="End once no thread that this worker takes runs or waits for one.",
)
@click.option(
    "--drain",
    is_flag=True,
    help="Start no worker: have the named ones leave their threads to others before the next step, and end.",
)
@click.option(
    "--all", "all_workers", is_flag=True, help="With `--drain`: all workers of the store."
)
@click.argument("workers", nargs=-1, metavar="[WORKER]...")
@json_option
def command(
    *,
    slots: int,
    flows: tuple[str, ...],
    offers: tuple[str, ...],
    listen: str | None,
    until_idle: bool,
    drain: bool,
    all_workers: bool,
    workers: tuple[str, ...],
    as_json: bool,
) -> int:
    """Make this machine a worker of a shared store: it drives threads that `run --store` starts
    anywhere, and those of workers that died.

    Scripts run in the current directory, with this machine's sandbox and secrets. After Ctrl-C,
    SIGTERM or `--drain` a worker takes no more threads, finishes the steps that it performs, leaves
    its threads to other workers, and ends. A second Ctrl-C ends it at once.

    \b
    Examples:
      uncaged-workflow work --store postgresql://db.example/team
      uncaged-workflow work --slots 8 --flows report,bill --offers gpu
      uncaged-workflow work --drain --all
    """
    if drain:
        return drain_workers(workers, all_workers=all_workers, as_json=as_json)
    if workers or all_workers:
        raise UsageError("WORKER and --all say which workers are to --drain")
    return _work(
        slots=slots,
        flows=flows,
        offers=offers,
        listen=listen,
        until_idle=until_idle,
        as_json=as_json,
    )


def _work(
    *,
    slots: int,
    flows: tuple[str, ...],
    offers: tuple[str, ...],
    listen: str | None,
    until_idle: bool,
    as_json: bool,
) -> NoReturn:
    """Work until this process is to end."""
    from uncaged_bundles.storage.store import Store
    from uncaged_engine.services.children import children_in
    from uncaged_engine.services.stores import StoreRefused
    from uncaged_engine.settings.loading import load
    from uncaged_engine.shared.driving import ThreadDriving, worker_place
    from uncaged_engine.shared.opening import opened_shared
    from uncaged_engine.shared.progress import ProgressSender
    from uncaged_engine.shared.replica import replica
    from uncaged_engine.shipped import add_our_flows
    from uncaged_engine.threads.starting import Chance

    store = Store.open()
    chosen = needed_store(store)
    config = load(store)
    offer = offer_of(config, slots=slots, offers=offers, flows=flows)
    prepare_sandbox(store, config)
    stop = threading.Event()
    events = WorkerEvents(as_json=as_json)
    _end_on_signals(stop, events)
    chance = Chance()
    run_child = children_in(chosen.address, store, chance)
    renewal = Renewal.of_process()
    if not renewal.wait_for(chosen, stop):
        _leave(0)

    def started() -> None:
        renewal.started()
        events.started(backend.address, offer)

    with (
        opened_shared(chosen.address, is_visible=chosen.is_visible, made=tell_made) as backend,
        closing(backend.dispatcher()) as dispatcher,
        replica(backend, store, chance) as copies,
        closing(ProgressSender(backend.progress.send)) as progress,
    ):
        with suppress(StoreRefused):  # a user who may only drive threads
            add_our_flows(copies.registry, chance.clock_ms())
        note_unknown(copies.registry, offer.flows or ())
        place = worker_place(chance.clock_ms)
        driving = ThreadDriving(
            copies,
            place,
            events.warned,
            run_child,
            backend.queue.owner,
            agents=dispatcher.agents(),
            publish=progress.publish,
        )

        with _ended_by_loss(renewal, stop, events):
            dispatcher.work(
                _noted(driving.drive, events),
                driving.steer,
                _noted_leave(driving.leave, stop, events),
                offer=offer,
                until_idle=until_idle,
                stop=stop,
                silent_s=config.limits.worker_s,
                started=started,
                warn=events.hindered,
                listen=listen,
            )
        driving.close()
    _leave(0)  # drivers of threads that only waited are still there


def prepare_sandbox(store: Store, config: Config) -> None:
    """Check that this machine has a sandbox, without which a worker would leave each thread
    unfinished, and restore the owners that a killed worker left changed.
    """
    from uncaged_engine.sandbox.mechanism import choose
    from uncaged_engine.sandbox.ownership import restore_owners

    choose(config.sandbox)
    restore_owners(store.lent)


@contextmanager
def _ended_by_loss(renewal: Renewal, stop: threading.Event, events: WorkerEvents) -> Iterator[None]:
    """End this process if the store is lost in the block, or begin it anew: threads that others
    drive by now must not go on here.
    """
    try:
        yield
    except UncagedError as exc:
        if isinstance(exc, StorageError) and renewal.is_possible and not stop.is_set():
            events.lost(str(exc))
            renewal.begin_anew()
        note(Styled("error: ", "red"), str(exc))
        _leave(exc.exit_code)


def _noted_leave(leave: LeaveThreads, stop: threading.Event, events: WorkerEvents) -> LeaveThreads:
    """Return *leave* with an event at its first call."""

    def noted() -> bool:
        are_left = leave()
        if stop.is_set() and not events.is_stopping:
            with suppress(OSError):
                events.stopping()
        return are_left

    return noted


def _noted(drive: DriveThread, events: WorkerEvents) -> DriveThread:
    """Return *drive* with an event at the begin and the end of each thread."""
    from uncaged_engine.services.shared import ThreadHandedOver

    def noted(bundle: BundleHash, thread: ThreadId, from_line: int, record: Recorder) -> str:
        events.driven(thread)
        try:
            word = drive(bundle, thread, from_line, record)
        except ThreadHandedOver:
            events.left(thread, "handed over")
            raise
        events.left(thread, word)
        return word

    return noted


def drain_workers(texts: tuple[str, ...], *, all_workers: bool, as_json: bool) -> int:
    """Have workers leave their threads to others, and end."""
    from uncaged_bundles.storage.store import Store
    from uncaged_engine.shared.opening import opened_shared

    if bool(texts) == all_workers:
        raise UsageError("name the workers that are to drain (`queues` lists them), or say --all")
    chosen = needed_store(Store.open())
    with opened_shared(chosen.address, is_visible=chosen.is_visible) as backend:
        queue = backend.queue
        names = None if all_workers else workers_named(texts, queue.workers())
        drained = queue.drain(names)
    for name in drained:
        if as_json:
            json_output.line({"event": "drains", "worker": name})
        else:
            result(f"{name} drains")
    if not drained:
        note("the store has no worker")
    return 0


def _end_on_signals(stop: threading.Event, events: WorkerEvents) -> None:
    """Set *stop* at the first SIGINT or SIGTERM, and end this process at the second, with an event;
    at the third without one, since the output may be blocked.
    """
    received: SimpleQueue[int] = SimpleQueue()  # whose `put` may interrupt its own `get`
    numbers = count(1)

    def receive(number: int, _frame: object) -> None:
        if next(numbers) > 2:
            os._exit(EXIT_INTERRUPTED)
        received.put(number)

    def carry_out() -> None:
        received.get()
        stop.set()
        received.get()
        with suppress(OSError):
            events.interrupted()
        _leave(EXIT_INTERRUPTED)

    threading.Thread(target=carry_out, name="signals", daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, receive)


def _leave(code: int) -> NoReturn:
    """End this process at once, with all that it drives."""
    with suppress(OSError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
