"""`/api/machine`: workers, the queue of agents, sandbox, disk, limits, costs, and the checks of
`doctor`.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from uncaged_bundles.errors import SandboxUnavailable, StorageError, UncagedError
from uncaged_bundles.version import __version__
from uncaged_engine.api import Engine, ThreadSummary
from uncaged_engine.services.costs import counted_usage
from uncaged_engine.services.documents import lean_view
from uncaged_engine.services.sandbox import choose
from uncaged_engine.services.shared_engine import SharedEngine

from .endpoints import MOST_READ, ApiDocument, ApiEndpoint, Asked

DOCTOR_S = 120
COST_DAYS = 30
COST_THREADS = 20_000
"""The newest threads, whose costs are summed."""
MOST_SHARED_COST_THREADS = 2000
"""The same, of a shared store."""
MODEL_THREADS = 200
"""Threads with costs whose records are read for the costs of models, the newest first."""
DAY_MS = 86_400_000


class Worker(ApiDocument):
    """A thread that a worker drives. pid: its process; None on a shared store. worker: its name
    there; empty for a thread that waits for one.
    """

    hash: str
    pid: int | None
    worker: str | None
    thread_id: str
    flow: str
    doing: str | None
    since_ms: int | None
    queued: int


class CostRow(ApiDocument):
    name: str
    threads: int
    tokens: int
    cost: float
    unpriced: bool


class Costs(ApiDocument):
    """days: by UTC date, the last first. models: of the newest threads that cost something.
    complete, models_complete: whether all threads of these days are in the sums.
    """

    days: list[CostRow]
    flows: list[CostRow]
    models: list[CostRow]
    complete: bool
    models_complete: bool


class SharedWorker(ApiDocument):
    """Living worker of a shared store. flows: those that it serves; None for all. drains: it takes
    no more threads.
    """

    worker: str
    slots: int
    threads: int
    offers: list[str]
    flows: list[str] | None
    engine: str
    since_ms: int
    drains: bool


class MachineState(ApiDocument):
    """store: a directory, or the address of a shared store; then sandbox, agents, limits and free
    bytes are those of the server's machine, not of the workers.
    """

    version: str
    python: str
    system: str
    store: str
    shared: bool
    free_bytes: int
    total_bytes: int
    sandbox: str
    workers: list[Worker]
    shared_workers: list[SharedWorker]
    queued: int
    agents: list[str]
    limits: dict[str, Any]


class DoctorCheck(ApiDocument):
    name: str
    level: str
    text: str
    remedy: str


class Doctor(ApiDocument):
    checks: list[DoctorCheck]


def machine(engine: Engine, asked: Asked) -> object:  # noqa: ARG001
    config = engine.config
    disk = shutil.disk_usage(engine.store.root)
    names = {one.thread_id: one.name for one in engine.running()}
    working = [
        {
            "hash": one["hash"],
            "pid": one.get("pid"),
            "worker": one.get("worker"),
            "threadId": one["threadId"],
            "flow": names.get(one["threadId"], ""),
            "doing": one.get("doing"),
            "sinceMs": one.get("sinceMs"),
            "queued": int(one.get("queued") or 0),
        }
        for one in engine.working()
    ]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "store": engine.address if isinstance(engine, SharedEngine) else str(engine.store.root),
        "shared": engine.is_shared,
        "freeBytes": disk.free,
        "totalBytes": disk.total,
        "sandbox": _sandbox(config.sandbox),
        "workers": working,
        "sharedWorkers": _shared_workers(engine),
        "queued": sum(int(one["queued"]) for one in working),
        "agents": list(config.agents),
        "limits": asdict(config.limits),
    }


def _shared_workers(engine: Engine) -> list[dict[str, object]]:
    if not isinstance(engine, SharedEngine):
        return []
    return [
        {
            "worker": one.name,
            "slots": one.offer.slots,
            "threads": one.threads,
            "offers": sorted(one.offer.offers),
            "flows": None if one.offer.flows is None else sorted(one.offer.flows),
            "engine": one.engine,
            "sinceMs": one.since_ms,
            "drains": one.drains,
        }
        for one in engine.workers()
    ]


def _sandbox(prefer: str) -> str:
    try:
        return choose(prefer).name
    except SandboxUnavailable as exc:
        return f"none: {exc.reason}"


def doctor(engine: Engine, asked: Asked) -> object:  # noqa: ARG001
    """Run the command `doctor`, which asks every package for its checks."""
    from os import environ

    command = [sys.executable, "-m", "uncaged_cli", "doctor", "--json"]
    try:
        done = subprocess.run(
            command,
            env={**environ, "UNCAGED_WORKFLOW_HOME": str(engine.store.root)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DOCTOR_S,
            check=False,
        )
        checks = json.loads(done.stdout)
    except subprocess.TimeoutExpired as exc:
        raise StorageError(f"`doctor` did not end within {DOCTOR_S} s") from exc
    except ValueError as exc:
        raise StorageError("`doctor` printed no checks; run it on a terminal") from exc
    kept = ("name", "level", "text", "remedy")
    return {"checks": [{key: one[key] for key in kept} for one in checks]}


def costs(engine: Engine, asked: Asked) -> object:  # noqa: ARG001
    since_ms = engine.clock_ms() - COST_DAYS * DAY_MS
    limit = MOST_SHARED_COST_THREADS if engine.is_shared else COST_THREADS
    page = engine.page(limit=limit, most_read=MOST_READ)
    complete = page.before is None or any(one.started_ms < since_ms for one in page.threads)
    paid = [
        one
        for one in page.threads
        if one.started_ms >= since_ms and (one.spent.tokens or one.spent.cost)
    ]
    days, flows, models = CostTable(), CostTable(), CostTable()
    for one in paid:
        day = datetime.fromtimestamp(one.started_ms / 1000, UTC).date().isoformat()
        for table, name in ((days, day), (flows, one.name)):
            table.add(name, one.spent.tokens, one.spent.cost, unpriced=one.spent.unpriced)
    for one in paid[:MODEL_THREADS]:
        _add_models(engine, one, models)
    return {
        "days": sorted(days.rows(), key=lambda row: str(row["name"]), reverse=True),
        "flows": flows.rows(),
        "models": models.rows(),
        "complete": complete,
        "modelsComplete": complete and len(paid) <= MODEL_THREADS,
    }


class CostTable:
    """Sums of tokens and US dollars by name."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, int, float, bool]] = {}

    def add(self, name: str, tokens: int, cost: float, *, unpriced: bool) -> None:
        """Count one more thread, or one more turn."""
        threads, before, paid, lacking = self._sums.get(name, (0, 0, 0.0, False))
        self._sums[name] = (threads + 1, before + tokens, paid + cost, lacking or unpriced)

    def rows(self) -> list[dict[str, object]]:
        """Return the sums, the greatest cost first."""
        found = [
            {"name": name, "threads": threads, "tokens": tokens, "cost": cost, "unpriced": lacking}
            for name, (threads, tokens, cost, lacking) in self._sums.items()
        ]
        return sorted(found, key=lambda one: (-float(str(one["cost"])), str(one["name"])))


def _add_models(engine: Engine, thread: ThreadSummary, models: CostTable) -> None:
    try:
        found = lean_view(engine.store, engine.store.locate_thread(thread.thread_id))
    except UncagedError:
        return  # a damaged thread hides no other
    source = found.start.get("forkFrom")
    inherited = source.get("seq", 0) if isinstance(source, Mapping) else 0
    for record in found.records:
        usage = counted_usage(record)
        if isinstance(usage, Mapping) and record.get("seq", 0) > inherited:
            name = str(usage.get("model") or record.get("model") or record.get("by") or "unknown")
            tokens = sum(_count(usage.get(key)) for key in ("inputTokens", "outputTokens"))
            cost = usage.get("cost")
            paid = float(cost) if isinstance(cost, int | float) else 0.0
            models.add(name, tokens, paid, unpriced=cost is None and tokens > 0)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


ENDPOINTS = (
    ApiEndpoint(
        method="GET",
        path="/api/machine",
        summary="Workers, the queue of agents, sandbox, disk and limits",
        handler=machine,
        answer=MachineState,
    ),
    ApiEndpoint(
        method="GET",
        path="/api/machine/doctor",
        summary="The checks of `doctor`",
        handler=doctor,
        answer=Doctor,
    ),
    ApiEndpoint(
        method="GET",
        path="/api/machine/costs",
        summary=f"Costs of the last {COST_DAYS} days by day, flow and model",
        handler=costs,
        answer=Costs,
    ),
)
