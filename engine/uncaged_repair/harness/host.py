"""Test host: runs tests on a copy of the repository in a sandboxed process, and starts a new
process if one is lost.
"""

from __future__ import annotations

import base64
import json
import os
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.sandbox import ScriptProcess

from ..project.runner_config import RunnerConfig
from ..server.forks import CLOCK_FACTOR
from ..server.runs import IMPORT_S
from .results import BROKEN, Collected, Message, RunReport, collected_of, run_of
from .working_copies import WorkingCopy

SERVER = Path(__file__).parents[1] / "server"
LOAD = """
import importlib.util as u, json, sys
s = u.spec_from_file_location("_uncaged_repair", sys.argv[1] + "/__init__.py", submodule_search_locations=[sys.argv[1]])
m = u.module_from_spec(s); sys.modules[s.name] = m; s.loader.exec_module(m)
from _uncaged_repair.boot import main
from _uncaged_repair.bytecode import install
install(json.loads(sys.argv[2]))
sys.argv[1:] = []
main()
"""
START_S = 60.0
COLLECT_S = 120.0
SPARE_S = 120.0
"""Added to the longest time of a run, for the server's own work around it."""
CHILD_MEMORY_BYTES = 1 << 30
MAX_MESSAGE_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Edits to compare on the calls of the tests: path and new content of each; the tests run under
    the first. cpu_s: processor time for all replayed calls.
    """

    edits: Sequence[tuple[str, bytes]]
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Request for one run of tests.

    expected: tests whose failure does not stop the run. files: changed files, path to content.
    cpu_s: processor time of one test; total_s: of all. wall_s: time by the clock of one test that
    waits instead of computing; if all of them wait, total_s is time by the clock as well. only:
    lines of interest by path, for tracing. compare: edits to compare instead of changed files.
    """

    tests: Sequence[str]
    cpu_s: float
    wall_s: float
    total_s: float
    warm: bool = True
    quick: bool = False
    stop: bool = False
    suite: bool = False
    cover: bool = False
    types: bool = False
    tidy: bool = False
    expected: Sequence[str] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    only: Mapping[str, Sequence[int]] | None = None
    compare: Comparison | None = None


class HostGone(Exception):
    """Loss of the sandboxed process: it ended, timed out, or sent an invalid message."""


class Host:
    """Owner of one working copy and its process, which is started on first use."""

    def __init__(self, working_copy: WorkingCopy, config: RunnerConfig) -> None:
        self.working_copy, self.config = working_copy, config
        self.runner, self.version, self.root = config.command.runner, "", ""
        self._process: ScriptProcess | None = None
        self._rest = b""

    @property
    def started(self) -> bool:
        return self._process is not None

    def collect(self, total_s: float) -> Collected:
        """Import the repository's tests and return their names.

        Raises:
            EnvironmentLacks: the process does not start.
        """
        if self._process is None:
            self._start()
        try:
            found = collected_of(
                self._exchange({"do": "collect", "total_s": total_s}, CLOCK_FACTOR * total_s + 30)[
                    -1
                ]
            )
        except HostGone:
            self.close()
            self.working_copy.renew()
            return Collected(tests=(), errors=(), root="", imported=(), called=(), end="died")
        self.root = found.root
        return found

    def run(self, request: RunRequest) -> RunReport:
        """Run tests. If the process is lost, the report ends "broken" and the next run starts a new
        process.
        """
        try:
            return run_of(self.messages(request))
        except HostGone:
            return BROKEN

    def messages(self, request: RunRequest) -> list[Message]:
        """Run tests as `run` does and return the raw messages.

        Raises:
            HostGone: the process was lost.
        """
        try:
            if self._process is None:
                self.collect(max(request.total_s, COLLECT_S))
            longest_s = CLOCK_FACTOR * (request.total_s + request.wall_s + IMPORT_S) + SPARE_S
            return self._exchange(self._command(request), longest_s)
        except HostGone:
            self.close()
            self.working_copy.renew()
            raise

    def close(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None

    def _start(self) -> None:
        config, working_copy = self.config, self.working_copy
        directory = working_copy.repository / config.inside
        executable = config.interpreter.executable
        self._process = working_copy.start(
            [str(executable), "-c", LOAD, str(SERVER), json.dumps(self._bytecode())],
            directory=directory,
            environment=config.variables_for_tests(),
            read=(SERVER, *config.read, *([config.bytecode] if config.bytecode else [])),
        )
        self._rest = b""
        settings: dict[str, object] = {
            "root": str(working_copy.repository),
            "cwd": str(directory),
            "pristine": str(working_copy.pristine),
            "empty": [str(working_copy.home), str(working_copy.temporary)],
            "sources": list(config.sources),
            "origins": {str(origin): str(working_copy.repository) for origin in config.origins},
            "paths": [
                str(path)
                for path in (
                    working_copy.repository,
                    working_copy.repository / "src",
                    working_copy.repository / "lib",
                )
                if path.is_dir()
            ],
            "arguments": list(config.command.arguments),
            "options": config.options_for_single_tests(),
            "runner": self.runner,
            "memory_bytes": CHILD_MEMORY_BYTES,
        }
        try:
            ready = self._exchange(settings, START_S)[-1]
        except HostGone as exc:
            output = self._stderr_tail()
            self.close()
            raise EnvironmentLacks(
                f"{executable} does not run in the sandbox: {output or exc}",
                remedy="fix the environment or give --test-command",
            ) from exc
        self.runner, self.version = (
            cast("str", ready.get("runner", self.runner)),  # type: ignore[assignment]
            str(ready.get("version", "")),
        )

    def _bytecode(self) -> dict[str, object] | None:
        """Return the settings of the bytecode directory; None for none."""
        working_copy = self.working_copy
        path = self.config.bytecode or working_copy.bytecode
        if path is None:
            return None
        return {
            "path": str(path),
            "fill": path == working_copy.bytecode,
            "repository": str(working_copy.repository),
            # not the server itself: tests may have written the directory
            "libraries": [str(place) for place in self.config.read],
            "excluded": [str(working_copy.repository.parent)],
        }

    def _command(self, request: RunRequest) -> dict[str, object]:
        repository = self.working_copy.repository
        command: dict[str, object] = {
            "do": "run",
            "root": str(repository),
            "rootdir": self.root,
            "mode": "warm" if request.warm else "cold",
            "tests": list(request.tests),
            "expected": list(request.expected),
            "files": {
                path: base64.b64encode(data).decode() for path, data in request.files.items()
            },
            "cpu_limit_s": request.cpu_s,
            "wall_s": request.wall_s,
            "total_s": request.total_s,
        }
        for name in ("quick", "stop", "suite", "tidy"):
            command[name] = getattr(request, name)
        if request.compare is not None:
            edits = request.compare.edits
            command["compare"] = {
                "edits": [[path, base64.b64encode(data).decode()] for path, data in edits],
                "cpu_s": request.compare.cpu_s,
            }
        if request.cover:
            only = request.only
            paths = self.config.sources if only is None else tuple(only)
            command |= {
                "cover": True,
                "types": request.types,
                "cover_sources": {str(repository / path): path for path in paths},
            }
            if only is not None:
                command["only"] = {path: list(lines) for path, lines in only.items()}
        return command

    def _exchange(self, message: Mapping[str, object], silence_s: float) -> list[Message]:
        """Send one message and return the messages up to the one with "end" or "ready"."""
        process = self._process
        if process is None:
            raise HostGone("it is not running")
        try:
            data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
            while data:
                data = data[process.stdin.write(data) or 0 :]
        except OSError as exc:
            raise HostGone("it no longer reads") from exc
        answers: list[Message] = []
        until = time.monotonic() + silence_s
        while not answers or not {"end", "ready"} & set(answers[-1]):
            answers.append(_parsed(self._line(process, until)))
        return answers

    def _line(self, process: ScriptProcess, until: float) -> bytes:
        parts = [self._rest]
        size = len(self._rest)
        while b"\n" not in parts[-1]:
            if not select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                raise HostGone("it fell silent")
            parts.append(os.read(process.stdout.fileno(), 1 << 18))
            size += len(parts[-1])
            if not parts[-1] or size > MAX_MESSAGE_BYTES:
                raise HostGone("it ended" if not parts[-1] else "it says too much")
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _stderr_tail(self) -> str:
        if self._process is None or not select.select([self._process.stderr], [], [], 0.5)[0]:
            return ""
        return os.read(self._process.stderr.fileno(), 4096).decode(errors="replace").strip()[-500:]


def _parsed(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise HostGone("it speaks no JSON") from exc
    if not isinstance(message, dict):
        raise HostGone("it speaks no messages")
    return message
