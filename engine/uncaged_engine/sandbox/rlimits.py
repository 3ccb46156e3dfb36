"""The resource limits of a sandboxed process, as numbers that the process can set on itself without importing anything."""

from __future__ import annotations

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
    """Soft and hard limit alike: at the end of a CPU allowance only the hard one's SIGKILL reaches a process that is pid 1."""
    return RESOURCES[name], value, value


def cell_limits(*, memory_bytes: int, cpu_s: int) -> list[Limit]:
    """The limits of a bundle's process: no file can grow, no process can start, no core is left behind."""
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
