"""Other durable engines with the same step of a thousand bytes, if installed (`pip install -e
.[peers]`).

Each runs in its own process: `python -m benchmarks.peers NAME DIRECTORY STEPS` prints the
microseconds per step.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from uncaged_engine.journal import chain, lines

from .baseline import bare_step_us
from .bench import Bench, Figure
from .flows import VALUE_BYTES
from .table import Row, ratios

WARM_UP = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """title: how it is used. distributions: what must be installed, the first one gives the
    version.
    """

    title: str
    distributions: tuple[str, ...]
    measure: Callable[[Path, int], float]


def peers(bench: Bench) -> Sequence[Row]:
    """Two rows for each peer that is installed, on disk and in memory."""
    versions = {name: _version(peer) for name, peer in PEERS.items()}
    rows = [
        _row(bench, name, PEERS[name], found, in_memory=in_memory)
        for name, found in versions.items()
        if found is not None
        for in_memory in (False, True)
    ]
    lacking = [name for name, found in versions.items() if found is None]
    if lacking:
        remark = "not installed; `pip install -e '.[peers]'` adds their rows"
        rows.append(
            Row(
                figure="peers",
                title=f"peers ({', '.join(lacking)})",
                unit="",
                baseline="",
                remark=remark,
            )
        )
    return rows


def _version(peer: Peer) -> str | None:
    try:
        found, *_ = [version(name) for name in peer.distributions]
        return found
    except PackageNotFoundError:
        return None


def _row(bench: Bench, name: str, peer: Peer, found: str, *, in_memory: bool) -> Row:
    steps = bench.scaled(400)
    line, _ = chain.seal(b"", lines.step(100, {"outcome": "v" * VALUE_BYTES}, 1_767_225_600_000))
    pairs = []
    for _ in bench.rounds(3):
        with bench.directory(in_memory=in_memory) as directory:
            bare = bare_step_us(directory, line, steps)
            pairs.append((_apart_us(name, directory, steps), bare))
    place = "tmpfs" if in_memory else "on disk"
    return Row(
        figure="peers",
        title=f"{peer.title.format(version=found)}, {place}",
        values=ratios(pairs),
        unit="×",
        baseline=f"{median(bare for _, bare in pairs):.1f} µs dump + append + fdatasync",
    )


def _apart_us(name: str, directory: Path, steps: int) -> float:
    command = [sys.executable, "-m", f"{__package__}.peers", name, str(directory), str(steps)]
    done = subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return float(done.stdout.split()[-1])


def langgraph_us(directory: Path, steps: int) -> float:
    """Tasks of a functional entrypoint, saved by SQLite before the next step starts."""
    functional: Any = import_module("langgraph.func")
    sqlite: Any = import_module("langgraph.checkpoint.sqlite")

    def answer(number: int) -> str:  # noqa: ARG001 - each call is another one
        return "v" * VALUE_BYTES

    task = functional.task(answer)

    def flow(count: int) -> float:
        return _per_step_us(lambda number: task(number).result(), count)

    with sqlite.SqliteSaver.from_conn_string(str(directory / "langgraph.sqlite")) as saver:
        graph = functional.entrypoint(checkpointer=saver)(flow)
        return float(graph.invoke(steps, {"configurable": {"thread_id": "1"}}, durability="sync"))


def dbos_us(directory: Path, steps: int) -> float:
    """Steps of a workflow, each committed to SQLite."""
    dbos: Any = import_module("dbos")
    url = f"sqlite:///{directory / 'dbos.sqlite'}"
    dbos.DBOS(
        config={
            "name": "benchmark",
            "system_database_url": url,
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )

    def answer(number: int) -> str:  # noqa: ARG001 - each call is another one
        return "v" * VALUE_BYTES

    step = dbos.DBOS.step()(answer)

    def flow(count: int) -> float:
        return _per_step_us(step, count)

    workflow = dbos.DBOS.workflow()(flow)
    dbos.DBOS.launch()
    try:
        return float(workflow(steps))
    finally:
        dbos.DBOS.destroy()


def burr_us(directory: Path, steps: int) -> float:
    """Steps of a state machine that returns to itself, its state saved by SQLite after each."""
    core, persistence = import_module("burr.core"), import_module("burr.core.persistence")

    def answer(state: Any) -> Any:
        return state.update(number=state["number"] + 1, value="v" * VALUE_BYTES)

    with persistence.SQLitePersister.from_values(str(directory / "burr.sqlite")) as persister:
        persister.initialize()
        answering = core.action(reads=["number"], writes=["number", "value"])(answer)
        builder = (
            core.ApplicationBuilder()
            .with_actions(answer=answering)
            .with_transitions(("answer", "answer"))
        )
        builder = (
            builder.with_state(number=0)
            .with_entrypoint("answer")
            .with_identifiers(app_id="1")
            .with_state_persister(persister)
        )
        application = builder.build()
        return _per_step_us(lambda _number: application.step(), steps)


def huey_us(directory: Path, steps: int) -> float:
    """Tasks, each queued, performed and its result kept in SQLite before the next is queued."""
    huey: Any = import_module("huey").SqliteHuey(
        filename=str(directory / "huey.sqlite"), fsync=True
    )

    def answer(number: int) -> str:  # noqa: ARG001 - each call is another one
        return "v" * VALUE_BYTES

    task = huey.task()(answer)

    def perform(number: int) -> object:
        result = task(number)
        huey.execute(huey.dequeue())
        return result.get(preserve=True)

    return _per_step_us(perform, steps)


def _per_step_us(perform: Callable[[int], object], count: int) -> float:
    """Perform *count* steps; how long each took after the first few."""
    for number in range(WARM_UP):
        perform(number)
    begin = time.perf_counter()
    for number in range(count):
        perform(number)
    return (time.perf_counter() - begin) / count * 1e6


PEERS: dict[str, Peer] = {
    "langgraph": Peer(
        title="LangGraph {version}, functional, SQLite",
        distributions=("langgraph", "langgraph-checkpoint-sqlite"),
        measure=langgraph_us,
    ),
    "dbos": Peer(title="DBOS {version}, SQLite", distributions=("dbos",), measure=dbos_us),
    "burr": Peer(title="Burr {version}, SQLite", distributions=("apache-burr",), measure=burr_us),
    "huey": Peer(title="huey {version}, SQLite", distributions=("huey",), measure=huey_us),
}

FIGURES = (Figure(name="peers", measure=peers),)


if __name__ == "__main__":
    sys.stdout.write(f"{PEERS[sys.argv[1]].measure(Path(sys.argv[2]), int(sys.argv[3]))}\n")
