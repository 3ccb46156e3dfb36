"""`python -m tests.soak --minutes 60`: random threads under random kills, judged from outside. Exit 1: a promise was broken."""

from __future__ import annotations

import random
import shutil
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


def main() -> int:
    asked = arguments()
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
    parser.add_argument("--minutes", type=float, default=2.0, help="how long new threads are started and disturbed")
    parser.add_argument("--seed", type=int, help="of the plans and the order of the commands; the kernel's timing stays its own")
    parser.add_argument("--control", choices=CONTROLS, help="run an engine without this safeguard; the harness must report it")
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
        told = tell_stories(machine, judge, asked.minutes * 60, seed, stop_early=asked.control is not None)
        left = machine.left_behind(PATIENCE_S)
    for words in left:
        judge.report(f"left: a process was left behind: {words}")
    judge.check_repeats()
    judge.check_acknowledged()
    print(  # noqa: T201 - the harness's output
        f"{told} threads, {machine.count} commands, {machine.killed} workers killed, {sum(world.requests.values())} requests, "
        f"{len(judge.seen)} records seen, {len(judge.violations)} violations"
    )
    return judge.violations


def tell_stories(machine: Machine, judge: Judge, seconds: float, seed: int, *, stop_early: bool) -> int:
    """Have several people live through stories until the time is over; returns how many threads there were."""
    ending, can_trace = threading.Event(), shutil.which("strace") is not None
    numbers = iter(range(sys.maxsize))

    def live() -> None:
        while not ending.is_set():
            number = next(numbers)
            Story(machine, judge, chance_of(seed, number), traced=can_trace and number % 4 == 0).tell(ending)

    with ThreadPoolExecutor(PEOPLE) as people:
        living = [people.submit(live) for _ in range(PEOPLE)]
        chance, deadline = chance_of(seed, "kills"), time.monotonic() + seconds
        while time.monotonic() < deadline and not (stop_early and judge.found.is_set()):
            judge.found.wait(chance.uniform(*PAUSE_S)) if stop_early else time.sleep(chance.uniform(*PAUSE_S))
            machine.kill_a_worker(chance)
        ending.set()
        for one in living:
            one.result()
    return next(numbers)


if __name__ == "__main__":
    sys.exit(main())
