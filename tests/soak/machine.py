"""The machine under the soak test: a store, the command, the workers that it kills, the flushes
that a tracer sees.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

TESTS = Path(__file__).parent.parent
LOOK_S = 0.02
CONTROLS = {"flush": "no-flush", "lock": "no-lock", "intent": "late-intent", "ask": "no-ask"}
TRACER = (
    "strace",
    "-DDD",
    "-f",
    "-qq",
    "-y",
    "-ttt",
    "-T",
    "-s",
    "0",
    "--seccomp-bpf",
    "-e",
    "trace=fdatasync",
    "-e",
    "signal=none",
    "-o",
)
PATCHING = """import sys
if {{"uncaged_engine.worker", {more!r}}} & {{*sys.orig_argv[:3]}}:
    from testbed.patched import PATCHES
    for name in {names!r}:
        PATCHES[name]()
"""
_PR_SET_CHILD_SUBREAPER = 36
_FLUSH = re.compile(
    r"^(\d+) +([\d.]+) fdatasync\(\d+<([^>]*)>(?:\) += 0 <([\d.]+)>| <unfinished \.\.\.>)"
)
_RESUMED = re.compile(r"^(\d+) +([\d.]+) <\.\.\. fdatasync resumed>\) += 0 <")


class LateError(Exception):
    """A command that had not ended when all had to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """A successful flush of a journal, in seconds of the wall clock."""

    path: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that was started. Its outputs are files: the tracer keeps them open for as long as
    the worker lives.

    is_late: whether every command must have ended by now.
    """

    words: Sequence[str]
    is_late: Callable[[], bool]
    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]

    def lines(self) -> Iterator[str]:
        """Yield each whole line soon after it was written, until the command has ended.

        Raises:
            LateError: it had to be killed.
        """
        place = 0
        buffer = b""
        while True:
            running = self.process.poll() is None
            more = os.pread(self.out.fileno(), 1 << 20, place)
            place += len(more)
            *whole, buffer = (buffer + more).split(b"\n")
            yield from (f"{line.decode()}\n" for line in whole)
            if not more and not running:
                return
            if self.is_late():
                self.process.kill()
                self.complaint()
                raise LateError(" ".join(self.words))
            if not more:
                time.sleep(LOOK_S)

    def complaint(self) -> str:
        """Return what it wrote to standard error, and forget its outputs."""
        self.process.wait()
        text = os.pread(self.err.fileno(), 1 << 20, 0).decode(errors="replace")
        self.out.close()
        self.err.close()
        return text


@dataclass(slots=True)
class Machine:
    """A store and everything that runs for it. deadline_s: when every command must have ended, by
    the monotonic clock.
    """

    root: Path
    control: str | None
    traces: Path
    count: int = 0
    killed: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    deadline_s: float = math.inf

    def __post_init__(self) -> None:
        # so that whatever is left behind becomes our child
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        own = {
            "UNCAGED_WORKFLOW_HOME": str(self.root),
            "HOME": str(self.root.parent),
            "XDG_RUNTIME_DIR": str(self.root.parent),
        }
        if self.control is not None:
            (self.traces.parent / "sitecustomize.py").write_text(
                PATCHING.format(
                    names=CONTROLS[self.control].split(","),
                    more="uncaged_cli" if self.control == "ask" else "",
                )
            )
            # a worker inherits no variable of our own
            own["PYTHONPATH"] = os.pathsep.join([str(self.traces.parent), str(TESTS)])
        self.environment = {**os.environ, **own}

    def start(self, *words: str, traced: bool = False) -> Command:
        """Start the command."""
        self.count += 1
        before = (
            [*TRACER, str(self.traces / f"{self.count}.{random.getrandbits(32):x}")]
            if traced
            else []
        )
        command = [*before, sys.executable, "-m", "uncaged_cli", *words]
        outputs = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - `Command.complaint` closes them
        process = subprocess.Popen(
            command,
            env=self.environment,
            cwd=self.root.parent,
            stdin=subprocess.DEVNULL,
            stdout=outputs[0],
            stderr=outputs[1],
        )
        return Command(
            words=words, is_late=self.is_late, process=process, out=outputs[0], err=outputs[1]
        )

    def is_late(self) -> bool:
        return time.monotonic() > self.deadline_s

    def run(self, *words: str, traced: bool = False) -> tuple[int, str, str]:
        """Run the command to its end: exit code and both outputs. Raises: as `Command.lines`."""
        command = self.start(*words, traced=traced)
        out = "".join(command.lines())
        return command.process.returncode, out, command.complaint()

    def kill_a_worker(self, chance: random.Random) -> None:
        """SIGKILL a worker, if there is one."""
        workers = [
            process for process in _descendants() if "uncaged_engine.worker" in _words(process)[:3]
        ]
        if workers:
            self.killed += 1
            with suppress(psutil.Error):
                chance.choice(workers).send_signal(signal.SIGKILL)

    def journals(self, thread: str) -> list[Path]:
        """Return the file of a thread's journal, if there is one."""
        return list(self.root.glob(f"logs/*/{thread}.data.jsonl"))

    def journal(self, thread: str) -> list[dict[str, Any]]:
        """Return the whole lines of a thread's journal; none if it has no journal."""
        lines = [
            line for path in self.journals(thread) for line in path.read_bytes().split(b"\n")[:-1]
        ]
        records = []
        for line in lines:
            with suppress(ValueError):  # a torn line is cut by the next worker
                records.append(json.loads(line))
        return records

    def threads(self) -> list[str]:
        """Return the threads that have a journal."""
        return sorted(path.name.partition(".")[0] for path in self.root.glob("logs/*/*.data.jsonl"))

    def flushes(self) -> list[Flush]:
        """Return every flush of a journal that the tracer saw."""
        found = []
        for log in self.traces.iterdir():
            open_calls: dict[str, tuple[str, float]] = {}
            for line in log.read_text(errors="replace").splitlines():
                if begun := _FLUSH.match(line):
                    number, begin_s, path, took_s = begun.groups()
                    if took_s is None:
                        open_calls[number] = path, float(begin_s)
                    else:
                        found.append(
                            Flush(
                                path=path,
                                begin_s=float(begin_s),
                                end_s=float(begin_s) + float(took_s),
                            )
                        )
                elif (ended := _RESUMED.match(line)) and ended[1] in open_calls:
                    path, start_s = open_calls.pop(ended[1])
                    found.append(Flush(path=path, begin_s=start_s, end_s=float(ended[2])))
        return found

    def left_behind(self, patience_s: float) -> list[str]:
        """Wait until nothing runs any more; return the command lines of what still does, and end
        it.
        """
        deadline = time.monotonic() + patience_s
        while (running := _descendants()) and time.monotonic() < deadline:
            time.sleep(0.1)
        lines = [" ".join(_words(process))[:200] for process in running]
        while running := _descendants():  # one that we end may start another before
            for process in running:
                with suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(running, timeout=1)
        return lines


def _descendants() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _words(process: psutil.Process) -> Sequence[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
