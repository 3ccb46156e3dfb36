"""Worker processes of a hundred child threads, at each limit of parallel children."""

from __future__ import annotations

import time
from collections.abc import Sequence

from uncaged_bundles.ids import BundleHash
from uncaged_engine.journal import lock

from . import flows
from .bench import Bench, Figure
from .laboratory import PATIENCE_S, POLL_S, Laboratory
from .table import Row

CHILDREN = 100
LIMITS = (1, 8, 64)

CHILD = """\
    yield {"null": {"value": "v"}}
    return {"success": True, "message": "done"}
"""
PARENT = """\
    one = {"flow": {"name": "child"}}
    answers = yield {"all": {"effects": [one] * 100, "limit": int(input["prompt"])}}
    return {"success": True, "message": str(sum("outcome" in answer for answer in answers))}
"""


def children(bench: Bench) -> Sequence[Row]:
    """Count the workers of a flow with a hundred children, and the children that finished."""
    with bench.laboratory() as laboratory:
        child = laboratory.add("child", flows.source("child", CHILD))
        laboratory.add(
            "parent",
            flows.source("parent", PARENT).replace(b'{"null": {}}', b'{"flow": {}, "all": {}}', 1),
        )
        workers = [_workers(laboratory, child, limit) for limit in LIMITS]
        finished = sum(one.status == "completed" for one in laboratory.engine.threads("child"))
    wanted = CHILDREN * len(LIMITS)
    return (
        Row(
            figure="children",
            title=f"workers of {CHILDREN} child threads",
            values=tuple(map(float, workers)),
            unit="",
            baseline=f"{finished} of {wanted} children finished, at limits {', '.join(map(str, LIMITS))}",
            reach=1,
            exact=True,
            missed="a child found no worker of its bundle, and started another",
        ),
    )


def _workers(laboratory: Laboratory, child: BundleHash, limit: int) -> int:
    """Return the number of workers of the children while their parent ran."""
    thread = laboratory.start("parent", limit)
    path, seen = laboratory.path(thread), set[int]()
    end = time.monotonic() + PATIENCE_S
    while lock.is_live(path):
        if time.monotonic() > end:
            raise TimeoutError(
                f"{CHILDREN} children at limit {limit} did not end within {PATIENCE_S:.0f} s"
            )
        pid = laboratory.worker_pid(child)
        seen.update(() if pid is None else (pid,))
        time.sleep(POLL_S)
    laboratory.end_worker(child)
    return len(seen)


FIGURES = (Figure(name="children", measure=children),)
