"""Command line of the product with a store and a home directory of its own."""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

__all__ = ["CommandLine", "Ran", "command_line"]

PROGRAM = Path(sys.executable).parent / "uncaged-workflow"
SERVERS = ("uncaged_engine.worker", "uncaged_browser.session")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
WALL_S = 180.0
ENDED_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that ended. cpu_s: processor time of its process and of the store's workers."""

    arguments: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float

    @property
    def document(self) -> Mapping[str, Any]:
        """Return the JSON object that it printed; {} without one."""
        with suppress(ValueError):
            found = json.loads(self.stdout)
            return found if isinstance(found, dict) else {}
        return {}

    @property
    def result(self) -> Mapping[str, Any]:
        """Return the result of the thread that it followed; {} without one."""
        for line in reversed(self.stdout.splitlines()):
            with suppress(ValueError, AttributeError):
                record = json.loads(line).get("record", {})
                if "end" in record:
                    return dict(record.get("result") or {})
        return {}

    @property
    def text(self) -> str:
        """Return message and data of the thread's result as text."""
        data = self.result.get("data")
        return f"{self.result.get('message', '')}\n{data if isinstance(data, str) else json.dumps(data)}"

    @property
    def reason(self) -> str:
        """Return the message of a command without success in one line."""
        message = self.result.get("message") or self.document.get("message")
        if message:
            return " ".join(str(message).split())[:300]
        lines = [line.strip() for line in (self.stderr or self.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith(("error", "unsuccessful"))]
        return (errors or lines or [f"exit code {self.code}"])[-1][:300]


class CommandLine:
    """Commands with one store. programs: directory that comes first on their PATH."""

    def __init__(self, root: Path) -> None:
        self.store = root / "store"
        self.programs = root / "bin"
        self.calls: list[Ran] = []
        self._home = root / "home"
        self._workers: dict[int, float] = {}
        for directory in (self._home, self.programs, root / "run"):
            directory.mkdir(parents=True, exist_ok=True)
        self.store.mkdir(mode=0o700, exist_ok=True)
        self._environment = {
            "HOME": str(self._home),
            "PATH": f"{self.programs}:{SYSTEM_PATH}",
            "LANG": "C.UTF-8",
            "UNCAGED_WORKFLOW_HOME": str(self.store),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "GIT_AUTHOR_NAME": "A Person",
            "GIT_AUTHOR_EMAIL": "person@example.org",
            "GIT_COMMITTER_NAME": "A Person",
            "GIT_COMMITTER_EMAIL": "person@example.org",
        }

    def configure(self, config: Mapping[str, object]) -> None:
        """Write the store's config.yaml."""
        (self.store / "config.yaml").write_text(json.dumps(config), "utf-8")

    def run(
        self, *arguments: str, cwd: Path, wall_s: float = WALL_S, answer: str | None = None
    ) -> Ran:
        """Run one command to its end; one that takes too long is killed, with the exit code -9."""
        before = self._cpu_s()
        begin_s = time.monotonic()
        with subprocess.Popen(
            [str(PROGRAM), *arguments],
            cwd=cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL if answer is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                stdout, stderr = process.communicate(answer, timeout=wall_s)
            except subprocess.TimeoutExpired:
                process.kill()
                stdout, stderr = process.communicate()
        wall = time.monotonic() - begin_s
        self._note_workers()
        ran = Ran(
            arguments=arguments,
            code=process.returncode,
            stdout=stdout,
            stderr=stderr,
            wall_s=wall,
            cpu_s=self._cpu_s() - before,
        )
        self.calls.append(ran)
        return ran

    def end_processes(self) -> None:
        """End the workers and browser sessions of the store with all that they started."""
        left: list[psutil.Process] = []
        for server in self._servers():
            with suppress(psutil.Error):
                left += [*server.children(recursive=True), server]
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        for process in left:
            with suppress(OSError):  # it is gone
                wait_for_end(process.pid, ENDED_S)

    def _servers(self) -> Iterator[psutil.Process]:
        """Yield the live workers and browser sessions of the store."""
        for place in Path("/proc").glob("[1-9]*"):
            with suppress(OSError, psutil.Error):
                words = (place / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                if any(server in " ".join(words[:6]) for server in SERVERS) and any(
                    Path(word).is_relative_to(self.store) for word in words if word.startswith("/")
                ):
                    yield psutil.Process(int(place.name))

    def _note_workers(self) -> None:
        """Keep the processor time of each worker of the store, with its ended children's."""
        for server in self._servers():
            with suppress(psutil.Error):
                used = 0.0
                for process in (server, *server.children(recursive=True)):
                    with suppress(psutil.Error):
                        used += sum(process.cpu_times()[:4])
                self._workers[server.pid] = max(self._workers.get(server.pid, 0.0), used)

    def _cpu_s(self) -> float:
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        return own.ru_utime + own.ru_stime + sum(self._workers.values())


def wait_for_end(pid: int, timeout_s: float) -> None:
    """Wait until a process has ended, reaped or not.

    Raises:
        OSError: there is none.
    """
    fd = os.pidfd_open(pid)
    try:
        select.select([fd], [], [], timeout_s)
    finally:
        os.close(fd)


@contextmanager
def command_line(root: Path) -> Iterator[CommandLine]:
    """Give a command line whose processes end with the block."""
    commands = CommandLine(root)
    try:
        yield commands
    finally:
        commands.end_processes()


def options_of(parameters: Mapping[str, object]) -> Sequence[str]:
    """Return the options of `run` for parameters."""
    return [
        word
        for name, value in parameters.items()
        for word in ("--param", f"{name}={value if isinstance(value, str) else json.dumps(value)}")
    ]
