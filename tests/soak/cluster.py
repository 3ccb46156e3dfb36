"""`python -m tests.soak.cluster --minutes 10`: threads on a shared store while its workers are
killed, judged from outside. Exit 1: a promise was broken.

The world is a web server on loopback and files to which scripts append: there each effect is
counted, by its key. The harness decides about effects in doubt as a person does, and knows the
moments of the kills. At the end it kills no more, and waits until all threads have ended.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from testbed.postgres import postgres_server
from testbed.restate import restate_server
from uncaged_bundles.storage.store import Store
from uncaged_cluster.store import PostgresStore, open_store
from uncaged_engine.api import Engine
from uncaged_engine.shared_engine import shared_engine
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend

from .crowd import FLOW, MIXED, Crowd
from .flows import chance_of
from .freezing import freezes, split
from .people import Person, people_at_work
from .server import World, serving
from .verdict import Verdict
from .workers import Workers

LOOK_S = 1.0
PROGRESS_S = 30.0
CONTROLS = {"ask": "no-ask", "intent": "late-intent", "takeover": "no-takeover", "line": None}
"""Patches of the workers without a safeguard; ``line`` removes a line from the database."""


def main() -> int:
    asked = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if asked.frozen or asked.split:
        chosen = [*([freezes] if asked.frozen else []), *([split] if asked.split else [])]
        return 1 if [one for judge in chosen for one in judge(_say)] else 0
    seed = random.SystemRandom().getrandbits(32) if asked.seed is None else asked.seed
    _say(f"seed {seed}")
    root = Path(tempfile.mkdtemp(prefix="soak-", dir="/tmp"))
    root.chmod(0o755)  # scripts run as users of their own, who pass through
    verdict, took_s = soak(root, asked, seed)
    spent = os.times()  # server and workers have ended
    cpu_s = (spent.children_user + spent.children_system, spent.user + spent.system)
    _say("\n".join(verdict.lines(cpu_s, took_s)))
    if verdict.crowd.violations and asked.control is None:
        _say(f"kept: {root}")
    else:
        shutil.rmtree(root)
    return 1 if verdict.crowd.violations else 0


def soak(root: Path, asked: Namespace, seed: int) -> tuple[Verdict, float]:
    """Start threads and kill workers, then judge the whole; return the verdict, and the seconds
    until the last thread ended.
    """
    places = root / "places"
    places.mkdir()
    world = World(chance_of(seed, "world"), slowest_s=asked.slowest)
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server(max_connections=400))
        schema = server.new_schema()
        address = server.address(schema)
        port = stack.enter_context(serving(world, lambda _key, _is_connected: None))
        _fill(address, root / "origin", FLOW.format(port=port, pause=asked.pause).encode())
        patch = None if asked.control is None else CONTROLS[asked.control]
        workers = Workers(address=address, root=root, slots=asked.slots, patch=patch)
        person = Store.open(root / "person")
        store = stack.enter_context(closing(open_store(address, create=False, is_visible=True)))
        assert isinstance(store, PostgresStore)
        if asked.restate:
            restate = stack.enter_context(restate_server())
            store.run_with_restate(restate.admin, restate.ingress)
        engine = stack.enter_context(
            shared_engine(address, person, is_visible=True, report=lambda _sentence: None)
        )
        crowd = Crowd(
            engine=engine,
            store=store,
            server=server,
            schema=schema,
            places=places,
            operations=("script",) if asked.scripts else MIXED,
            steps=(asked.steps, asked.steps) if asked.steps else (8, 12),
            chance=chance_of(seed, "person"),
            has_others=asked.people > 0,
        )
        begin_s = time.monotonic()
        people = [
            Person(crowd, address, root / f"person-{number}", chance_of(seed, number))
            for number in range(asked.people)
        ]
        with workers.at_work(asked.workers), people_at_work(people) as ending:
            _disturb(crowd, workers, asked, chance_of(seed, "kills"), ending)
        done = sum((person.done for person in people), Counter[str]())
        refused = sum((person.refused for person in people), Counter[str]())
        if people:
            _say(f"other clients: {dict(done)}; refused: {dict(refused)}")
        took_s = time.monotonic() - begin_s
        if asked.control == "line":
            _drop_a_line(crowd)
        verdict = Verdict(crowd, workers, world.requests + crowd.scripts_run())
        verdict.judge()
        return verdict, took_s


def _disturb(
    crowd: Crowd, workers: Workers, asked: Namespace, chance: random.Random, ending: Event
) -> None:
    """Keep threads in flight and kill workers until the time is over, or so many were started;
    then wait until all have ended. ending: set when other clients are to end.
    """
    begin_s = now_s = time.monotonic()
    deadline_s = begin_s + asked.minutes * 60
    next_kill_s, next_progress_s = begin_s + asked.every, begin_s + PROGRESS_S
    while now_s < deadline_s + asked.calm and (
        crowd.live or (now_s < deadline_s and crowd.started < asked.total)
    ):
        if now_s < deadline_s:
            while len(crowd.live) < asked.threads and crowd.started < asked.total:
                crowd.start()
                if time.monotonic() >= next_kill_s:
                    break
            if time.monotonic() >= next_kill_s:
                workers.kill_one(chance)
                next_kill_s = time.monotonic() + asked.every
        else:
            ending.set()
        crowd.look()
        if time.monotonic() >= next_progress_s:
            next_progress_s += PROGRESS_S
            _say(
                f"{time.monotonic() - begin_s:.0f} s: {crowd.started} threads started, {len(crowd.ended)} ended, {len(workers.kills_ms)}"
                f" workers killed, {sum(crowd.redone.values()) + len(crowd.skipped)} effects in doubt"
            )
        time.sleep(LOOK_S)
        now_s = time.monotonic()
    if crowd.started < asked.total < sys.maxsize:
        left = asked.total - crowd.started
        crowd.report("unfinished", f"{left} threads were not started in {asked.minutes} minutes")


def _drop_a_line(crowd: Crowd) -> None:
    """Remove the last line but one of an ended thread: a control of the verdict."""
    with crowd.server.connect(options=f"-c search_path={crowd.schema}") as rows:
        rows.execute(
            "DELETE FROM thread_lines USING threads WHERE log = number AND name = %s AND position = lines - 2",
            [crowd.ended[0]],
        )


def _fill(address: str, directory: Path, flow: bytes) -> None:
    """Make the store from a directory with the flow."""
    origin = Engine.open(directory)
    origin.add("soak", flow, accept=lambda _: True)
    with closing(open_store(address, create=True, is_visible=True)) as store:
        copy_store(
            DirectoryBackend(origin.store),
            store,
            replace=False,
            progress=lambda _kind, _count: None,
        )


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the harness's output


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.soak.cluster", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long workers are killed")
    parser.add_argument("--threads", type=int, default=200, help="how many are in flight")
    parser.add_argument("--total", type=int, default=sys.maxsize, help="how many are started")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--people", type=int, default=0, help="clients that kill, pause, fork, remove and copy"
    )
    parser.add_argument("--slots", type=int, help="of each worker: 50, or 4 with --scripts")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two kills")
    parser.add_argument(
        "--calm", type=float, default=240.0, help="seconds after the last kill, at most"
    )
    parser.add_argument("--slowest", type=float, default=3.0, help="seconds of a request, at most")
    parser.add_argument("--scripts", action="store_true", help="no requests, only scripts")
    parser.add_argument(
        "--steps", type=int, help="effects of a thread: 8 to 12, or 3 with --scripts"
    )
    parser.add_argument(
        "--pause", type=int, default=2, help="tenths of a second in a script, twice"
    )
    parser.add_argument(
        "--restate", action="store_true", help="let Restate run the threads, not DBOS"
    )
    parser.add_argument(
        "--frozen", action="store_true", help="instead: freeze workers for 8 s and for 90 s"
    )
    parser.add_argument(
        "--split", action="store_true", help="instead: cut a worker's network for a minute"
    )
    parser.add_argument("--seed", type=int)
    parser.add_argument(
        "--control",
        choices=CONTROLS,
        help="run without this safeguard; the harness must report it",
    )
    asked = parser.parse_args()
    asked.slots = asked.slots or (4 if asked.scripts else 50)
    asked.steps = asked.steps or (3 if asked.scripts else None)
    return asked


if __name__ == "__main__":
    sys.exit(main())
