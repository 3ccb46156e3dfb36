"""Resource limits of a sandboxed process, as numbers that the process can set on itself without an
import.
"""

from __future__ import annotations

import os
from pathlib import Path

RESOURCES = {
    "cpu": 0,
    "fsize": 1,
    "core": 4,
    "nproc": 6,
    "nofile": 7,
    "memlock": 8,
    "as": 9,
    "msgqueue": 12,
}

Limit = tuple[int, int, int]
"""Number of the resource, soft limit, hard limit."""


def limit(name: str, value: int) -> Limit:
    """Return equal soft and hard limits: only the hard CPU limit's SIGKILL ends a process that is
    pid 1.
    """
    return RESOURCES[name], value, value


def cell_limits(*, memory_bytes: int, cpu_s: int) -> list[Limit]:
    """Return the limits of a bundle's process: no file can grow, no process can start, no core dump
    is written.
    """
    return [
        limit("as", memory_bytes),
        limit("cpu", cpu_s),
        limit("fsize", 0),
        limit("core", 0),
        limit("nofile", 32),
        limit("nproc", 0),
        limit("memlock", 0),
        limit("msgqueue", 0),
    ]


def script_limits(
    *, memory_bytes: int, cpu_s: int | None, file_bytes: int, tasks: int
) -> list[Limit]:
    """Return the limits of each process of a script; *tasks* counts all threads of its user."""
    limits = [
        limit("as", memory_bytes),
        limit("fsize", file_bytes),
        limit("core", 0),
        limit("nofile", 1024),
        limit("nproc", tasks),
        limit("msgqueue", 0),
    ]
    return limits if cpu_s is None else [*limits, limit("cpu", cpu_s)]


def count_tasks(uid: int) -> int:
    """Return the number of a user's threads in all processes: the kernel's process limit counts
    them together.
    """
    total = 0
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                try:
                    if entry.stat().st_uid == uid:
                        total += sum(1 for _ in Path(entry.path, "task").iterdir())
                except OSError:  # the process has ended meanwhile
                    continue
    return total
