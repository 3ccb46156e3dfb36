"""Liveness of workers: one lives as long as the database session in which it owns threads.

The server releases a session's advisory lock when its process dies or its connection is lost. A
frozen process keeps it, and is found by the time since its last statement.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable

from .session import DatabaseSession, session_lock

FROZEN_S = 60.0
"""A worker's session without a statement for so long belongs to a frozen process, or to a host that
is gone. Workers send one every second.
"""
_WORKER = re.compile(r".*#([0-9]+)")
_END_FROZEN = """
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND objsubid = 1 AND granted
AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (classid::bigint << 32) | objid::bigint = %s
AND state = 'idle' AND state_change < clock_timestamp() - make_interval(secs => %s)
"""


def worker_name(session: DatabaseSession) -> str:
    """Return a name of this process as a worker: host, process id, and the session's number."""
    return f"{socket.gethostname()}.{os.getpid()}#{session.number()}"


def dead_workers(
    session: DatabaseSession, names: Iterable[str], *, frozen_s: float = FROZEN_S
) -> set[str]:
    """Return those of some workers whose sessions have ended. The sessions of frozen ones are ended
    now, and found by the next call.

    Args:
        session: none of a worker's own. frozen_s: see `FROZEN_S`.
    """
    return {name for name in names if not _lives(session, name, frozen_s)}


def living_workers(session: DatabaseSession, names: Iterable[str]) -> set[str]:
    """Return those of some workers whose sessions have not ended; frozen ones are among them.

    Args:
        session: none of a worker's own.
    """
    with session.transaction():
        return {
            name
            for name in names
            if (found := _WORKER.fullmatch(name)) is not None and session.lives(int(found[1]))
        }


def _lives(session: DatabaseSession, name: str, frozen_s: float) -> bool:
    found = _WORKER.fullmatch(name)
    if found is None:
        return False
    number = int(found[1])
    with session.transaction():
        if not session.lives(number):
            return False
    session.query(_END_FROZEN, [session.lock_key(session_lock(number)), frozen_s])
    return True
