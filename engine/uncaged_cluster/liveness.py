"""Liveness of workers: one lives as long as the database session in which it owns threads.

The server releases a session's advisory lock when its process dies or its connection is lost. A
frozen process keeps it, and is found by the time since its last statement.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable

from .session import APPLICATION, DatabaseSession, session_lock

_WORKER = re.compile(r".*#([0-9]+)")
_CLIENT = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND objsubid = 1 AND granted
AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (classid::bigint << 32) | objid::bigint = %s
"""
# also one whose client does not read the result of a statement
_END_SILENT = """
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND objsubid = 1 AND granted
AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (classid::bigint << 32) | objid::bigint = ANY(%s)
AND (state <> 'active' OR wait_event_type = 'Client')
AND state_change < clock_timestamp() - make_interval(secs => %s)
"""


def worker_name(session: DatabaseSession) -> str:
    """Return a name of this process as a worker: host, process id, and the session's number."""
    return f"{socket.gethostname()}.{os.getpid()}#{session.number()}"


def dead_workers(session: DatabaseSession, names: Iterable[str], *, silent_s: float) -> set[str]:
    """Return those of some workers whose sessions have ended. The sessions of silent ones are ended
    now, and found by the next call.

    Args:
        session: none of a worker's own. silent_s: a session without a statement for so long belongs
            to a frozen process, or to a host that is gone. Workers send one every second.
    """
    known = set(names)
    living = living_workers(session, known)
    if living:
        locks = [session_lock(_number(name) or 0) for name in living]
        end_silent_holders(session, locks, silent_s=silent_s)
    return known - living


def end_silent_holders(session: DatabaseSession, locks: Iterable[str], *, silent_s: float) -> None:
    """End the sessions that hold some advisory locks and have sent no statement for so long."""
    session.query(_END_SILENT, [[session.lock_key(name) for name in locks], silent_s])


def living_workers(session: DatabaseSession, names: Iterable[str]) -> set[str]:
    """Return those of some workers whose sessions have not ended; frozen ones are among them.

    Args:
        session: none of a worker's own.
    """
    numbers = {name: number for name in names if (number := _number(name)) is not None}
    living = session.living(set(numbers.values()))
    return {name for name, number in numbers.items() if number in living}


def session_client(session: DatabaseSession, number: int) -> str:
    """Return the user, host and process id of the session with this number, as its client states
    them; empty if the session has ended.
    """
    rows = session.query(_CLIENT, [session.lock_key(session_lock(number))])
    return str(rows[0][0]).removeprefix(APPLICATION).strip() if rows else ""


def _number(name: str) -> int | None:
    """Return the number of a worker's session; None for a name that is no worker's."""
    found = _WORKER.fullmatch(name)
    return None if found is None else int(found[1])
