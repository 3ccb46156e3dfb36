"""Test environment of one answer: copies of the repository, a host for each core, and the known
test results.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.git import Git, GitError
from uncaged_engine.services.sandbox import choose

from .baseline import Baseline, measure
from .command import TestCommand, calming_options, names_plugin, parse_command
from .host import Host
from .interpreter import ProjectInterpreter, choose_interpreter
from .libraries import libraries_of
from .memory import CachedHost, tree_digest
from .paths import sources
from .plan import Plan
from .results import Collected
from .room import Rooms
from .spans import SourceFile, UnreadableSource, read_source
from .task import Progress, Task

WANTS_PLUGIN = re.compile(
    r"async def functions are not natively supported|fixture '\w+' not found|unrecognized arguments"
)
MAX_HOSTS = 2
COLLECT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where and how the tests of a task run; found without running any of them."""

    top: Path
    inside: str
    command: TestCommand
    interpreter: ProjectInterpreter

    @property
    def label(self) -> str:
        return f"`{self.command.text}`, {self.interpreter.label}"


def setting_of(task: Task) -> Setting:
    """Find the repository, the command and the interpreter of *task*."""
    git = Git(directory=task.worktree, environment=task.environment)
    top = Path(git.line("rev-parse", "--show-toplevel"))
    command = parse_command(task.test_command, task.worktree)
    interpreter = choose_interpreter(task.worktree, top, task.environment, command.python)
    return Setting(
        top=top,
        inside=task.worktree.resolve().relative_to(top.resolve()).as_posix(),
        command=command,
        interpreter=interpreter,
    )


class Laboratory:
    """Use as a context: the copies and processes are gone afterwards."""

    def __init__(self, task: Task, progress: Progress) -> None:
        self.task = task
        self.progress = progress
        self.setting = setting_of(task)
        self.sources = self._own_sources()
        self.hosts: list[Host] = []
        self._stack = ExitStack()
        self._read: dict[str, SourceFile | None] = {}
        self._rooms: Rooms | None = None

    def __enter__(self) -> Laboratory:
        mechanism = choose(self.task.sandbox, scripts=True)
        self.progress("copying the repository")
        with ExitStack() as stack:
            self._rooms = stack.enter_context(
                Rooms(self.setting.top, self.task.scratch / "repair", mechanism)
            )
            self._open_hosts(plugins=names_plugin(self.setting.top, self.setting.command.arguments))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._close_hosts()
        self._stack.close()

    @property
    def host(self) -> Host:
        return self.hosts[0]

    @property
    def runner(self) -> str:
        return f"{self.host.runner} {self.host.version}".strip()

    def collect(self) -> Collected:
        """Collect the tests; with the repository's pytest plugins if they turn out to be needed.

        Raises:
            EnvironmentLacks: the interpreter has no pytest and there are no unittest tests.
        """
        self.progress("collecting the tests")
        found = self.host.collect(COLLECT_S)
        if (
            any(WANTS_PLUGIN.search(message) for _, message in found.errors)
            and not self.host.plan.plugins
        ):
            self._reopen(plugins=True)
            found = self.host.collect(COLLECT_S)
        if (
            not found.tests
            and self.setting.command.runner == "pytest"
            and self.host.runner == "unittest"
        ):
            executable = self.setting.interpreter.executable
            raise EnvironmentLacks(
                f"{executable} ({self.setting.interpreter.reason}) has no pytest, and there are no unittest tests: "
                f"run `{executable} -m pip install pytest`, or give --test-command, then resume"
            )
        return found

    def measure(self, collected: Collected) -> Baseline:
        """Find out which tests fail, and what they do."""
        baseline = self._measure(collected)
        wanted = [
            result.error[1] for result in baseline.failing.values() if result.error is not None
        ]
        if any(WANTS_PLUGIN.search(message) for message in wanted) and not self.host.plan.plugins:
            self._reopen(plugins=True)
            baseline = self._measure(self.host.collect(COLLECT_S))
        return baseline

    def crew(self) -> list[Host]:
        """Return a host for each core that may be used, ready to run candidates."""
        if self._rooms is not None and len(self.hosts) == 1 and not self._rooms.large():
            while len(self.hosts) < min(MAX_HOSTS, len(os.sched_getaffinity(0))):
                host = Host(self._rooms.open(len(self.hosts)), self.host.plan)
                self.hosts.append(host)
                host.collect(COLLECT_S)
        return self.hosts

    def source(self, path: str) -> SourceFile | None:
        """Return the file *path* as it is in the worktree; None if it is none that may be changed,
        or cannot be read as Python.
        """
        if path not in self.sources:
            return None
        if path not in self._read:
            try:
                self._read[path] = read_source(path, (self.setting.top / path).read_bytes())
            except (OSError, UnreadableSource):
                self._read[path] = None
        return self._read[path]

    def _own_sources(self) -> tuple[str, ...]:
        """Return the files that may be changed: what the test command itself names is a test."""
        setting = self.setting
        named = {
            (setting.top / setting.inside / word).resolve() for word in setting.command.arguments
        }
        return tuple(
            path for path in sources(setting.top) if (setting.top / path).resolve() not in named
        )

    def _measure(self, collected: Collected) -> Baseline:
        limits, rooms, plan = self.task.limits, self._rooms, self.host.plan
        small = rooms is not None and not rooms.large()
        how = (
            self.setting.label,
            str(plan.plugins),
            str(limits),
            str(sorted(plan.command.variables.items())),
            self.runner,
        )
        tree = tree_digest(rooms.pristine, *how) if rooms is not None and small else ""
        runs = (
            CachedHost(self.host, self.task.scratch / "repair-measured.json", tree)
            if small
            else self.host
        )
        baseline = measure(
            runs, collected, test_s=limits.test_s, suite_s=limits.suite_s, progress=self.progress
        )
        if isinstance(runs, CachedHost):
            runs.keep()
        return baseline

    def _reopen(self, *, plugins: bool) -> None:
        self._close_hosts()
        for host in self.hosts:
            host.room.renew()
        plan = replace(self.host.plan, plugins=plugins)
        self.hosts = [Host(host.room, plan) for host in self.hosts]

    def _open_hosts(self, *, plugins: bool) -> None:
        if self._rooms is None:
            raise ValueError("the laboratory is closed")
        setting, environment = self.setting, self.task.environment
        repository = _checkout(setting.top, environment)
        virtual = setting.interpreter.executable.parent.parent
        beside = [
            place / name
            for place in {setting.top, repository}
            for name in (".venv", "venv")
            if (place / name / "pyvenv.cfg").is_file()
        ]
        libraries = libraries_of(setting.interpreter, environment)
        origins = tuple(
            dict.fromkeys((setting.top, setting.top.resolve(), repository, repository.resolve()))
        )
        outside = [
            path
            for path in libraries.paths
            if not any(path.is_relative_to(origin) for origin in origins)
        ]
        plan = Plan(
            interpreter=setting.interpreter,
            command=setting.command,
            inside=setting.inside,
            origins=origins,
            sources=self.sources,
            read=(
                *(
                    path
                    for path in dict.fromkeys((virtual, *beside))
                    if (path / "pyvenv.cfg").is_file()
                ),
                *outside,
            ),
            environment=environment,
            variables=libraries.variables,
            plugins=plugins,
            options=calming_options(setting.top, setting.command.arguments) if plugins else (),
        )
        self.hosts = [Host(self._rooms.open(0), plan)]

    def _close_hosts(self) -> None:
        for host in self.hosts:
            host.close()


def _checkout(top: Path, environment: Mapping[str, str]) -> Path:
    """Return the person's checkout that the worktree *top* belongs to."""
    git = Git(directory=top, environment=environment)
    try:
        common = Path(git.line("rev-parse", "--path-format=absolute", "--git-common-dir"))
    except GitError:
        return top
    return common.parent if common.name == ".git" else top
