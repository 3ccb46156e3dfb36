"""Control group (cgroup v2) around a command: processor time of all its processes, daemons
included, and an end to all of them.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ENTER = 'echo $$ > "$0" && exec "$@"'
KILL_TIMEOUT_S = 20.0

_open: list[ControlGroup] = []
_ended = threading.Event()


class NoControlGroup(Exception):
    """This machine has no cgroup v2 hierarchy that this user can write to, or this process ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroup:
    """Directory of a control group."""

    path: Path

    def enter(self, command: Sequence[str]) -> list[str]:
        """Return a command that enters the group and becomes *command*."""
        return ["/bin/sh", "-c", ENTER, str(self.path / "cgroup.procs"), *command]

    @property
    def cpu_s(self) -> float:
        """Return the processor time of all processes so far, those that ended included."""
        fields = dict(line.split() for line in (self.path / "cpu.stat").read_text().splitlines())
        return int(fields["usage_usec"]) / 1e6

    def kill(self) -> None:
        """Kill all processes and wait for their end."""
        (self.path / "cgroup.kill").write_text("1")
        until = time.monotonic() + KILL_TIMEOUT_S
        while "populated 0" not in (self.path / "cgroup.events").read_text():
            if time.monotonic() > until:
                raise TimeoutError(f"{self.path}: processes did not end")
            time.sleep(0.01)


@contextmanager
def control_group() -> Iterator[ControlGroup]:
    """Make a group; at the end its processes are killed and it is removed."""
    try:
        path = Path(tempfile.mkdtemp(prefix="uncaged-bench-", dir=_own_group()))
    except OSError as exc:
        raise NoControlGroup(f"no control group can be made: {exc}") from exc
    group = ControlGroup(path=path)
    _open.append(group)
    try:
        if _ended.is_set():
            raise NoControlGroup("this process is about to end")
        yield group
    finally:
        _open.remove(group)
        group.kill()
        path.rmdir()


def end_all_groups() -> None:
    """Kill the processes of all groups that other threads have made; no more can be made."""
    _ended.set()
    for group in list(_open):
        group.kill()


def _own_group() -> Path:
    mounts = [line.split(" ") for line in Path("/proc/self/mounts").read_text().splitlines()]
    roots = [fields[1] for fields in mounts if fields[2] == "cgroup2"]
    own = [line[3:] for line in _own_lines() if line.startswith("0::")]
    if not roots or not own:
        raise NoControlGroup("cgroup v2 is not mounted")
    return Path(roots[0], own[0].lstrip("/"))


def _own_lines() -> list[str]:
    return Path(f"/proc/{os.getpid()}/cgroup").read_text().splitlines()
