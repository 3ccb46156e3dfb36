"""Faults and counts at system calls, by strace."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Fault = Literal["KILL", "EIO", "ENOSPC"]
FAULTS: tuple[Fault, ...] = ("KILL", "EIO", "ENOSPC")
CALLS = ("write", "fdatasync", "fsync", "rename", "unlink", "ftruncate")
_LINE = re.compile(r"^(?:(\d+) +)?(\w+)\((.*)\) += (-?\d+|\?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """System call. pid: 0 if only one process was traced. result: None if it never returned."""

    pid: int
    name: str
    arguments: str
    result: int | None


def available() -> bool:
    """Whether processes can be traced here."""
    import subprocess

    found = shutil.which("strace")
    return (
        found is not None
        and subprocess.run(
            [found, "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False
        ).returncode
        == 0
    )


def strace(
    log: Path,
    *,
    calls: Sequence[str] = CALLS,
    paths: Sequence[Path] = (),
    inject: str | None = None,
    alone: bool = False,
    light: bool = False,
) -> list[str]:
    """Return the words in front of a command that trace it.

    Args:
        paths: only calls about these files count. inject: ``NAME:error=EIO:when=3`` and the like.
        alone: without the threads and processes that it starts. light: the kernel stops the process
            at the named calls only, so that the timing of the rest stays close to that of an
            untraced process; not together with `alone`.
    """
    words = [
        "strace",
        "-qq",
        "-y",
        "-s",
        "0",
        "-o",
        str(log),
        "-e",
        f"trace={','.join(calls)}",
        "-e",
        "signal=none",
    ]
    words += [] if alone else ["-f"]
    words += ["--seccomp-bpf"] if light else []
    for path in paths:
        words += ["-P", str(path)]
    return words + (["-e", f"inject={inject}"] if inject else [])


def points(**counts: int) -> list[str]:
    """Every call of each kind, once: ``write 1``, ``write 2`` …"""
    return [f"{call} {number}" for call, count in counts.items() for number in range(1, count + 1)]


def injection(point: str, fault: Fault) -> str:
    """The call at this point, in each thread of execution, fails, or is the last thing that
    happens.
    """
    call, _, number = point.partition(" ")
    return (
        f"{call}:signal=KILL:when={number}"
        if fault == "KILL"
        else f"{call}:error={fault}:when={number}"
    )


def calls_of(log: Path) -> list[Call]:
    """Return the traced calls in order; a call that another thread interrupted in the log is
    joined.
    """
    found: list[Call] = []
    begun: dict[tuple[str, str], str] = {}
    for text in log.read_text(errors="replace").splitlines():
        line = text
        if line.endswith("<unfinished ...>"):
            pid, rest = line.split(" ", 1)
            begun[pid, rest.strip().split("(")[0]] = line.removesuffix("<unfinished ...>").rstrip()
            continue
        resumed = re.match(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$", line)
        if resumed:
            line = begun.pop((resumed[1], resumed[2]), f"{resumed[1]} {resumed[2]}(") + resumed[3]
        matched = _LINE.match(line)
        if matched:
            result = None if matched[4] == "?" else int(matched[4])
            found.append(
                Call(pid=int(matched[1] or 0), name=matched[2], arguments=matched[3], result=result)
            )
    return found + [
        Call(pid=int(pid), name=name, arguments=text, result=None)
        for (pid, name), text in begun.items()
    ]


def durable_bytes(log: Path, path: Path, created_bytes: int) -> int:
    """How much of an append-only file a power cut would have left: what was written before the last
    flush that succeeded.
    """
    written = durable = created_bytes
    for call in calls_of(log):
        if f"<{path}>" not in call.arguments:
            continue
        if call.name == "write" and call.result is not None and call.result > 0:
            written += call.result
        elif call.name == "ftruncate" and call.result == 0:
            written = durable = int(call.arguments.rpartition(",")[2])
        elif call.name == "fdatasync" and call.result == 0:
            durable = written
    return durable
