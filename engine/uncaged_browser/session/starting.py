"""Start of a browser session as a process of its own."""

from __future__ import annotations

import os
import select
import subprocess
import sys

from uncaged_bundles.errors import EngineBug, EnvironmentLacks, StorageError, os_problem
from uncaged_bundles.storage.store import Store

from .address import report_path

__all__ = ["ALREADY_RUNNING", "NOT_READY", "READY", "start_session"]

READY, NOT_READY, ALREADY_RUNNING = b"1", b"0", b"2"
"""First byte that a session writes to its starter's pipe: it listens, it cannot (the reason
follows), or another process is the session.
"""
START_TIMEOUT_S = 60.0
DETACH = '"$@" </dev/null &'
"""Shell script that exits at once, so that init reaps the session."""
REMEDY = "correct that"


def start_session(store: Store, name: str, *, shown: bool = False) -> bool:
    """Start a session and wait until it listens; False if another process became it.

    Raises:
        EnvironmentLacks: its browser cannot be started here. EngineBug: it ended before it
            listened, or takes too long; the message names its report.
    """
    ready, theirs = os.pipe()
    report = -1
    try:
        report = os.open(
            # a session that runs writes to it; the one that gets the lock empties it
            report_path(store, name),
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC,
            0o600,
        )
        command = [sys.executable, "-m", "uncaged_browser.session", str(store.root), name]
        shell = subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                DETACH,
                "session",
                *command,
                "shown" if shown else "headless",
                str(theirs),
            ],
            stdout=report,
            stderr=report,
            pass_fds=(theirs,),
            start_new_session=True,
            cwd=store.root,
        )
        shell.wait()
    except OSError as exc:
        os.close(ready)
        raise StorageError(f"the browser session cannot be started: {os_problem(exc)}") from exc
    finally:
        os.close(theirs)
        if report >= 0:
            os.close(report)
    with os.fdopen(ready, "rb", buffering=0) as pipe:
        readable, _, _ = select.select([pipe], [], [], START_TIMEOUT_S)
        answer = pipe.read(select.PIPE_BUF) if readable else None
    if not answer:
        what = "did not start in time" if answer is None else "ended before it listened"
        raise EngineBug(f"browser session {name} {what}; see {report_path(store, name)}")
    if answer.startswith(NOT_READY):
        why = answer.removeprefix(NOT_READY).decode("utf-8", "replace")
        raise EnvironmentLacks(why, remedy=REMEDY, begun=False)
    return answer.startswith(READY)
