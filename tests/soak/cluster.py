"""`python -m tests.soak.cluster --minutes 10`: threads on a shared store while its workers are
killed, judged from outside. Exit 1: a promise was broken.

The world is a web server on loopback and a file to which scripts append: there each effect is
counted, by its key. The harness decides about effects in doubt as a person does, and knows the
moments of the kills.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from testbed.postgres import PostgresServer, postgres_server
from uncaged_bundles.ids import ThreadId, parse_thread_id
from uncaged_bundles.storage.store import Store
from uncaged_cluster.store import PostgresStore, open_store
from uncaged_engine.api import Engine
from uncaged_engine.shared_engine import SharedEngine, shared_engine
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend

from .flows import chance_of
from .server import World, serving

LOOK_S = 1.0
CALM_S = 240.0
"""So soon after the last kill every thread has ended."""
FLOW = """descriptor = {{
    "contract": 1,
    "name": "soak",
    "description": "Performs effects, most of which a repetition would show.",
    "kind": "task",
    "policy": {{
        "http": {{"hosts": ["127.0.0.1:{port}"], "private": True}},
        "sleep": {{}},
        "script": {{"executables": ["sleep"], "write": [{place!r}]}},
    }},
}}
URL = "http://127.0.0.1:{port}/"
SCRIPT = "sleep 0.{pause}; echo \\"$PARAM_KEY\\" >> {place}/ran; sleep 0.{pause}"


def effect_of(operation, number, options):
    return {{
        "post": {{"http": {{"method": "POST", "url": URL, "json": {{"number": number}}}}}},
        "get": {{"http": {{"url": URL}}}},
        "sleep": {{"sleep": {{"seconds": 2}}}},
        "script": {{"script": {{"language": "bash", "body": SCRIPT, "parameters": {{"key": f"{{options['threadId']}}/{{number}}"}}}}}},
    }}[operation]


def run(input, options):
    for number, operation in enumerate(input["prompt"].split(), 1):
        try:
            yield effect_of(operation, number, options)
        except EffectError:
            continue
    return {{"success": True, "message": "done"}}
"""
PLAN = (*("post",) * 2, *("get",) * 2, *("sleep",) * 6, "script")
"""The operations of a thread are drawn from these."""
ASKED = ("post", "script")
"""Operations whose handlers ask a person after a death."""


@dataclass
class Workers:
    """The processes of the workers. kills_ms: when one was killed."""

    address: str
    root: Path
    slots: int
    kills_ms: list[int] = field(default_factory=list)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def begin(self, number: int) -> subprocess.Popen[bytes]:
        home = self.root / f"worker-{number}"
        home.mkdir(exist_ok=True)
        home.chmod(0o755)
        words = ["-m", "uncaged_cli", "work", "--store", self.address, "--slots", str(self.slots)]
        with (self.root / f"worker-{number}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *words],
                env={**os.environ, "UNCAGED_WORKFLOW_HOME": str(home)},
                cwd=home,
                stdout=log,
                stderr=log,
            )

    @contextmanager
    def at_work(self, count: int) -> Iterator[None]:
        self.running = [self.begin(number) for number in range(count)]
        try:
            yield
        finally:
            for process in self.running:
                process.kill()
                process.wait()

    def kill_one(self, chance: random.Random) -> None:
        """SIGKILL a worker, and start another one in its place."""
        number = chance.randrange(len(self.running))
        process = self.running[number]
        if process.poll() is not None:
            raise AssertionError(f"worker {number} ended by itself with {process.returncode}")
        self.kills_ms.append(time.time_ns() // 1_000_000)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.kills_ms.append(time.time_ns() // 1_000_000)
        self.running[number] = self.begin(number)


@dataclass
class Soak:
    """The threads that were started, what became of them, and the violations."""

    engine: SharedEngine
    store: PostgresStore
    server: PostgresServer
    schema: str
    plans: Sequence[str]
    chance: random.Random
    live: set[ThreadId] = field(default_factory=set)
    ended: list[ThreadId] = field(default_factory=list)
    allowed: Counter[str] = field(default_factory=Counter)
    skipped: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    most: int = 0

    def report(self, violation: str) -> None:
        self.violations.append(violation)
        print(f"VIOLATION {violation}", file=sys.stderr, flush=True)  # noqa: T201 - the harness's output

    def start(self) -> None:
        plan = " ".join(self.chance.choices(self.plans, k=self.chance.randint(8, 12)))
        self.live.add(self.engine.run("soak", prompt=plan))
        self.most = max(self.most, len(self.live))

    def look(self) -> None:
        """Note which threads have ended, and decide for those that wait for a person."""
        left = set(self.live) - set(self.store.queue.pending(self.live))
        with self.server.connect(options=f"-c search_path={self.schema}") as rows:
            found = rows.execute(
                "SELECT name, line FROM threads JOIN thread_lines ON log = number"
                " AND position = lines - 1 WHERE name = ANY(%s)",
                [list(left)],
            ).fetchall()
        for name, line in found:
            thread = parse_thread_id(name)
            last = json.loads(bytes(line))
            if "end" in last:
                self.live.discard(thread)
                self.ended.append(thread)
            elif last.get("control") == "unknown":
                self.decide(thread, last["seq"])
            else:  # it was taken up, or left, since the first look
                status = self.engine.thread(thread).summary.status
                if status not in ("running", "unknown", "completed"):
                    self.report(f"lost: {thread} is {status} and no worker has it")
                    self.live.discard(thread)

    def decide(self, thread: ThreadId, seq: int) -> None:
        """Decide about an effect in doubt: half of them are performed once more."""
        key, redo = f"{thread}/{seq}", self.chance.random() < 0.5
        if redo:
            self.allowed[key] += 1
        else:
            self.skipped.add(key)
        self.engine.resume(thread, redo=redo, skip=not redo)


def main() -> int:
    asked = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    seed = random.SystemRandom().getrandbits(32) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)  # noqa: T201 - the harness's output
    root = Path(tempfile.mkdtemp(prefix="soak-", dir="/tmp"))
    root.chmod(0o755)  # scripts run as users of their own, who pass through
    violations = soak(root, asked, seed)
    if violations:
        print(f"kept: {root}")  # noqa: T201 - the same
        return 1
    shutil.rmtree(root)
    return 0


def soak(root: Path, asked: Namespace, seed: int) -> list[str]:
    """Start threads and kill workers, then judge the whole; return the violations."""
    place = root / "place"
    place.mkdir()
    place.chmod(0o777)
    ran = place / "ran"
    ran.touch()
    ran.chmod(0o666)  # scripts of several workers run as several users
    world = World(chance_of(seed, "world"), slowest_s=asked.slowest)
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server(max_connections=400))
        schema = server.new_schema()
        address = server.address(schema)
        port = stack.enter_context(serving(world, lambda _key, _is_connected: None))
        flow = FLOW.format(port=port, place=str(place), pause=asked.pause)
        _fill(address, root / "origin", flow.encode())
        workers = Workers(address=address, root=root, slots=asked.slots)
        person = Store.open(root / "person")
        store = stack.enter_context(closing(open_store(address, create=False, is_visible=True)))
        assert isinstance(store, PostgresStore)
        engine = stack.enter_context(
            shared_engine(address, person, is_visible=True, report=lambda _sentence: None)
        )
        story = Soak(
            engine=engine,
            store=store,
            server=server,
            schema=schema,
            plans=("script",) if asked.scripts else PLAN,
            chance=chance_of(seed, "person"),
        )
        with workers.at_work(asked.workers):
            begin_s = time.monotonic()
            _tell(story, workers, asked, chance_of(seed, "kills"))
            took_s = time.monotonic() - begin_s
        for thread in sorted(story.live):
            story.report(f"lost: {thread} has not ended")
        counted = Counter(world.requests)
        counted.update(ran.read_text().split())
        asked_for = _judge(story, workers, counted)
        problems = check_store(store, progress=lambda _kind, _count: None).problems
        for problem in problems:
            story.report(f"store: {problem}")
        print(  # noqa: T201 - the harness's output
            f"{len(story.ended)} threads ended in {took_s:.0f} s, up to {story.most} in flight; {len(workers.kills_ms) // 2} workers"
            f" killed; {sum(counted.values())} effects counted; {asked_for} in doubt at a kill and asked for"
            f" ({sum(story.allowed.values())} redone, {len(story.skipped)} skipped); {len(story.violations)} violations"
        )
        return story.violations


def _tell(story: Soak, workers: Workers, asked: Namespace, chance: random.Random) -> None:
    """Keep threads in flight and kill workers until the time is over, or so many were started;
    then wait until all have ended.
    """
    deadline_s = time.monotonic() + asked.minutes * 60
    next_kill_s = time.monotonic() + asked.every
    started = 0
    while time.monotonic() < deadline_s and (started < asked.total or story.live):
        while len(story.live) < asked.threads and started < asked.total:
            story.start()
            started += 1
            if time.monotonic() >= next_kill_s:
                break
        if time.monotonic() >= next_kill_s:
            workers.kill_one(chance)
            next_kill_s = time.monotonic() + asked.every
        story.look()
        time.sleep(LOOK_S)
    deadline_s = time.monotonic() + CALM_S
    while story.live and time.monotonic() < deadline_s:
        story.look()
        time.sleep(LOOK_S)


def _judge(story: Soak, workers: Workers, counted: Counter[str]) -> int:
    """Compare the journals with what the world has counted; return how many effects were asked for.

    A key is of an effect that asks. It was performed once, and once more for each time that a
    person said so; it is in doubt only if its worker was killed in it.
    """
    doubts = 0
    for thread in story.ended:
        entry = story.store.threads.locate(thread)
        lines: list[bytes] = []
        while more := story.store.threads.read(entry.bundle, thread, from_line=len(lines)):
            lines += more
        records = [json.loads(line) for line in lines]
        operations = records[0]["parameters"]["prompt"].split()
        if records[-1].get("end") != "completed":
            story.report(f"end: {thread}: {lines[-1][:300]!r}")
        for number, operation in enumerate(operations, 1):
            if operation not in ASKED:
                continue
            key = f"{thread}/{number}"
            intents = [one for one in records if one.get("seq") == number and "intent" in one]
            doubt = [
                one
                for one in records
                if one.get("seq") == number and one.get("control") == "unknown"
            ]
            doubts += len(doubt)
            times, most = counted[key], 1 + story.allowed[key]
            if times > most:
                story.report(f"repeated: {key} ({operation}) was performed {times} times")
            if times == 0 and key not in story.skipped:
                found = [one for one in records if one.get("seq") == number][-1]
                story.report(f"lost: {key} ({operation}) was not performed: {str(found)[:400]}")
            for one in doubt:
                begin_ms, end_ms = intents[0]["timestamp"], one["timestamp"]
                if not any(begin_ms - 1000 <= kill <= end_ms for kill in workers.kills_ms):
                    story.report(f"asked: {key} was in doubt, and no worker was killed in it")
            if len(doubt) != story.allowed[key] + (key in story.skipped):
                story.report(f"asked: {key} was in doubt {len(doubt)} times, and decided otherwise")
    return doubts


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


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.soak.cluster", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long threads are started")
    parser.add_argument("--threads", type=int, default=200, help="how many are in flight")
    parser.add_argument("--total", type=int, default=sys.maxsize, help="how many are started")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--slots", type=int, default=50, help="of each worker")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two kills")
    parser.add_argument("--slowest", type=float, default=3.0, help="seconds of a request, at most")
    parser.add_argument("--scripts", action="store_true", help="no requests, only scripts")
    parser.add_argument(
        "--pause", type=int, default=2, help="tenths of a second in a script, twice"
    )
    parser.add_argument("--seed", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
