"""`python -m tests.soak --minutes 60`: random threads under random kills, judged from outside. Exit
1: a promise was broken.
"""

from __future__ import annotations

import math
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .checks import Judge
from .flows import chance_of, source
from .machine import CONTROLS, Machine
from .server import World, serving
from .story import Story

PEOPLE = 4
PAUSE_S = (0.3, 2.5)
PATIENCE_S = 30.0
CALM_S = 240.0
"""So soon after the minutes are over every thread has been brought to its end."""


def main() -> int:
    asked = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if shutil.which("strace") is None:
        print("strace is not installed: no flush can be watched", flush=True)  # noqa: T201 - the harness's output
        if asked.control == "flush" or os.environ.get("CI") == "true":
            return 2
    seed = random.SystemRandom().getrandbits(32) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)  # noqa: T201 - the harness's output
    root = Path(tempfile.mkdtemp(prefix="soak-"))
    violations = soak(root, asked, seed)
    if violations and asked.control is None:
        print(f"kept: {root}")  # noqa: T201 - the same
    else:
        shutil.rmtree(root)
    return 1 if violations else 0


def arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=2.0, help="how long new threads are started and disturbed"
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="of the plans and the order of the commands; the kernel's timing stays its own",
    )
    parser.add_argument(
        "--control",
        choices=CONTROLS,
        help="run an engine without this safeguard; the harness must report it",
    )
    return parser.parse_args()


def soak(root: Path, asked: Namespace, seed: int) -> list[str]:
    """Run the stories, then judge the whole; returns the violations."""
    root.chmod(0o755)  # scripts run as users of their own, who pass through
    place, traces = root / "place", root / "traces"
    place.mkdir()
    traces.mkdir()
    machine = Machine(root=root / "store", control=asked.control, traces=traces)
    world = World(chance_of(seed, "world"))
    judge = Judge(machine=machine, world=world, place=place)
    with serving(world, judge.check_request) as port:
        for flow in ("soak", "soak-traced", "soak-child"):
            (root / f"{flow}.py").write_text(source(flow, port, place))
            code, _, complaint = machine.run("add", flow, str(root / f"{flow}.py"), "--accept")
            if code != 0:
                sys.exit(f"the flow {flow} is refused: {complaint}")
        try:
            told = tell_stories(machine, judge, asked.minutes * 60, seed)
        except BaseException:
            machine.left_behind(0)
            raise
        left = machine.left_behind(0 if asked.control else PATIENCE_S)
    for words in left if asked.control is None else ():
        judge.report(f"left: a process was left behind: {words}")
    judge.check_repeats()
    judge.check_acknowledged()
    print(  # noqa: T201 - the harness's output
        f"{told} threads, {machine.count} commands, {machine.killed} workers killed, {sum(world.requests.values())} requests, "
        f"{len(judge.seen)} records seen, {len(judge.violations)} violations"
    )
    return judge.violations


def tell_stories(machine: Machine, judge: Judge, seconds: float, seed: int) -> int:
    """Have several people live through stories until the time is over; returns how many threads
    there were.

    The engine without a safeguard is let go as soon as it was found out.
    """
    ending, can_trace, is_control = (
        threading.Event(),
        shutil.which("strace") is not None,
        machine.control is not None,
    )
    numbers = iter(range(sys.maxsize))

    def live() -> None:
        while not ending.is_set():
            number = next(numbers)
            traced = can_trace and (number % 4 == 0 or machine.control == "flush")
            Story(machine, judge, chance_of(seed, number), traced=traced).tell(ending)

    with ThreadPoolExecutor(PEOPLE) as people:
        living = [people.submit(live) for _ in range(PEOPLE)]
        chance, deadline = chance_of(seed, "kills"), time.monotonic() + seconds
        try:
            while time.monotonic() < deadline and not (is_control and judge.is_found_out()):
                judge.found.wait(chance.uniform(*PAUSE_S)) if is_control else time.sleep(
                    chance.uniform(*PAUSE_S)
                )
                machine.kill_a_worker(chance)
            machine.deadline_s = time.monotonic() + (0 if is_control else CALM_S)
            ending.set()
            for one in living:
                one.result()
        finally:
            ending.set()
            machine.deadline_s = min(machine.deadline_s, time.monotonic())
    machine.deadline_s = math.inf
    return next(numbers)


if __name__ == "__main__":
    sys.exit(main())
