"""Test harness of one answer: copies of the repository, a test host for each core, and cached
results.
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

from ..edits.spans import SourceFile, UnreadableSource, read_source
from ..project.command import TestCommand, needs_plugins, parse_command
from ..project.interpreter import ProjectInterpreter, choose_interpreter
from ..project.libraries import libraries_of
from ..project.paths import has_python, sources
from ..project.runner_config import RunnerConfig
from ..task import Progress, Task
from .baseline import Baseline, measure
from .host import COLLECT_S, Host
from .library_bytecode import keep_bytecode, kept_bytecode
from .result_cache import CachedHost, tree_digest
from .results import Collected
from .working_copies import WorkingCopies

WANTS_PLUGIN = re.compile(
    r"async def functions are not natively supported|fixture '\w+' not found|'\w+' not found in `markers`"
)
MAX_HOSTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Repository under repair: its top, the subdirectory to work in, the test command and the
    interpreter.
    """

    top: Path
    inside: str
    command: TestCommand
    interpreter: ProjectInterpreter

    @property
    def has_python(self) -> bool:
        """Return whether the repository has any Python file."""
        return has_python(self.top)

    @property
    def label(self) -> str:
        return f"`{self.command.text}`, {self.interpreter.label}"


def project_of(task: Task) -> Project:
    """Return the project of *task*; no test is run for it."""
    git = Git(directory=task.worktree, environment=task.environment)
    top = Path(git.line("rev-parse", "--show-toplevel"))
    command = parse_command(task.test_command, task.worktree)
    interpreter = choose_interpreter(task.worktree, top, task.environment, command.python)
    return Project(
        top=top,
        inside=task.worktree.resolve().relative_to(top.resolve()).as_posix(),
        command=command,
        interpreter=interpreter,
    )


class Harness:
    """Test harness. Its ``with`` block owns the copies and processes, which are removed
    afterwards. fill_bytecode: these runs collect the modules' bytecode, unless an answer before
    did.
    """

    def __init__(self, task: Task, progress: Progress, *, fill_bytecode: bool = False) -> None:
        self.task = task
        self._fill_bytecode = fill_bytecode
        self.progress = progress
        self.project = project_of(task)
        self.sources = self._own_sources()
        self.hosts: list[Host] = []
        self._stack = ExitStack()
        self._read: dict[str, SourceFile | None] = {}
        self._copies: WorkingCopies | None = None
        self._left_out: tuple[str, ...] = ()

    def __enter__(self) -> Harness:
        mechanism = choose(self.task.sandbox, scripts=True)
        self.progress("copying the repository")
        with ExitStack() as stack:
            self._copies = stack.enter_context(
                WorkingCopies(self.project.top, self.task.scratch / "repair", mechanism)
            )
            self._open_hosts(
                plugins=needs_plugins(self.project.top, self.project.command.arguments)
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._close_hosts()
        self._stack.close()

    @property
    def host(self) -> Host:
        return self.hosts[0]

    @property
    def repository(self) -> Path:
        """Return the person's checkout, which the worktree belongs to."""
        return _checkout(self.project.top, self.task.environment)

    @property
    def runner(self) -> str:
        """Return the test runner in words, with the options that it was not given."""
        label = f"{self.host.runner} {self.host.version}".strip()
        if not self._left_out:
            return label
        words = " ".join(self._left_out)
        return f"{label} without `{words}`, which no installed plugin knows"

    def collect(self) -> Collected:
        """Collect the tests. If they turn out to need the repository's pytest plugins, collect
        again with these.

        Raises:
            EnvironmentLacks: the interpreter has no pytest and there are no unittest tests.
        """
        self.progress("collecting the tests")
        found = self.host.collect(COLLECT_S)
        wanted = any(WANTS_PLUGIN.search(message) for _, message in found.errors)
        if (wanted or found.unknown_options) and not self.host.config.plugins:
            self._reopen(plugins=True)
            found = self.host.collect(COLLECT_S)
        self._left_out = found.unknown_options
        if (
            not found.tests
            and self.project.command.runner == "pytest"
            and self.host.runner == "unittest"
        ):
            executable = self.project.interpreter.executable
            raise EnvironmentLacks(
                f"{executable} ({self.project.interpreter.reason}) has no pytest, and there are no unittest tests",
                remedy=f"run `{executable} -m pip install pytest`, or give --test-command",
            )
        return found

    def measure(self, collected: Collected) -> Baseline:
        """Return the baseline; measure again with the repository's plugins if the failures show
        that they are needed.
        """
        baseline = self._measure(collected)
        wanted = [
            result.error[1] for result in baseline.failing.values() if result.error is not None
        ]
        if any(WANTS_PLUGIN.search(message) for message in wanted) and not self.host.config.plugins:
            self._reopen(plugins=True)
            baseline = self._measure(self.host.collect(COLLECT_S))
        return baseline

    def all_hosts(self) -> list[Host]:
        """Return all hosts, one for each core that may be used. All but the first start on their
        first run.
        """
        if self._copies is not None and len(self.hosts) == 1 and not self._copies.large():
            while len(self.hosts) < min(MAX_HOSTS, len(os.sched_getaffinity(0))):
                self.hosts.append(Host(self._copies.open(len(self.hosts)), self.host.config))
        return self.hosts

    def keep_bytecode(self) -> None:
        """Keep the bytecode that the runs have collected for the thread's later answers."""
        if (filled := self.host.working_copy.bytecode) is not None:
            keep_bytecode(filled, self.task.scratch)

    def source(self, path: str) -> SourceFile | None:
        """Return the file *path* of the worktree; None if it may not be changed or is no readable
        Python.
        """
        if path not in self.sources:
            return None
        if path not in self._read:
            try:
                self._read[path] = read_source(path, (self.project.top / path).read_bytes())
            except (OSError, UnreadableSource):
                self._read[path] = None
        return self._read[path]

    def _own_sources(self) -> tuple[str, ...]:
        """Return the files that may be changed. A file that the test command names counts as a
        test.
        """
        project = self.project
        named = {
            (project.top / project.inside / word).resolve() for word in project.command.arguments
        }
        git = Git(directory=project.top, environment=self.task.environment)
        # no commit of the repository could hold a change in a submodule
        linked = tuple(f"{name}/" for name in git.submodules())
        return tuple(
            path
            for path in sources(project.top)
            if (project.top / path).resolve() not in named and not path.startswith(linked)
        )

    def _measure(self, collected: Collected) -> Baseline:
        limits, copies, config = self.task.limits, self._copies, self.host.config
        small = copies is not None and not copies.large()
        how = (
            self.project.label,
            str(config.plugins),
            str(limits),
            str(sorted(config.command.variables.items())),
            self.runner,
        )
        tree = tree_digest(copies.pristine, *how) if copies is not None and small else ""
        runs = (
            CachedHost(self.host, self.task.scratch / "repair-measured.json", tree)
            if small
            else self.host
        )
        baseline = measure(
            runs, collected, test_s=limits.test_s, suite_s=limits.suite_s, progress=self.progress
        )
        if isinstance(runs, CachedHost):
            runs.save()
        return baseline

    def _reopen(self, *, plugins: bool) -> None:
        self._close_hosts()
        for host in self.hosts:
            host.working_copy.renew()
        config = replace(self.host.config, plugins=plugins)
        self.hosts = [Host(host.working_copy, config) for host in self.hosts]

    def _open_hosts(self, *, plugins: bool) -> None:
        if self._copies is None:
            raise ValueError("the harness is closed")
        project, environment = self.project, self.task.environment
        repository = self.repository
        virtual = project.interpreter.executable.parent.parent
        beside = [
            place / name
            for place in {project.top, repository}
            for name in (".venv", "venv")
            if (place / name / "pyvenv.cfg").is_file()
        ]
        libraries = libraries_of(project.interpreter, environment)
        origins = tuple(
            dict.fromkeys((project.top, project.top.resolve(), repository, repository.resolve()))
        )
        outside = [
            path
            for path in libraries.paths
            if not any(path.is_relative_to(origin) for origin in origins)
        ]
        bytecode = kept_bytecode(self.task.scratch)
        config = RunnerConfig(
            interpreter=project.interpreter,
            command=project.command,
            inside=project.inside,
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
            bytecode=bytecode,
        )
        fill = self._fill_bytecode and bytecode is None
        self.hosts = [Host(self._copies.open(0, fill_bytecode=fill), config)]

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
