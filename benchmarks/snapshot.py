"""Cost of a snapshot of a large working tree without changes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from uncaged_agents.workspace import Workspace, inspect
from uncaged_bundles.ids import new_thread_id

from .bench import Bench, Figure
from .laboratory import Laboratory
from .table import Row, ratios

FILES = 50_000
FILES_PER_DIRECTORY = 100
SETTINGS = (
    "-c",
    "user.name=bench",
    "-c",
    "user.email=bench@localhost",
    "-c",
    "init.defaultBranch=main",
    "-c",
    "core.fsync=none",
)


def snapshot(bench: Bench) -> Sequence[Row]:
    """A snapshot of the worktree of a thread, against `git status` in the same worktree."""
    count = bench.scaled(FILES)
    with bench.laboratory() as laboratory:
        repository = laboratory.directory / "repository"
        _make(repository, count)
        workspace, previous = _workspace(laboratory, repository)
        pairs = []
        for number in range(len(bench.rounds(7)) + 1):
            bare = _status_s(workspace.tree)
            begin = time.perf_counter()
            previous = workspace.snapshot(number + 1, previous, now_ms=time.time_ns() // 1_000_000)
            spent = time.perf_counter() - begin
            if number:  # after the first look git trusts the times of the files, for both alike
                pairs.append((spent, bare))
    return (
        Row(
            figure="snapshot",
            title=f"snapshot of a clean repository of {count:,} files",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(bare for _, bare in pairs) * 1000:.0f} ms git status",
            reach=3.0,
            missed="besides looking at every file git writes its index, a commit and a ref, and starts six times for it",
        ),
    )


def _make(repository: Path, count: int) -> None:
    for number in range(count):
        directory = repository / f"d{number // FILES_PER_DIRECTORY}"
        if number % FILES_PER_DIRECTORY == 0:
            directory.mkdir(parents=True)
        (directory / f"f{number}.txt").write_text(f"file {number}\n", "utf-8")
    for command in (
        ("init", "--quiet"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "files"),
    ):
        subprocess.run(["git", *SETTINGS, *command], cwd=repository, check=True)


def _workspace(laboratory: Laboratory, repository: Path) -> tuple[Workspace, str | None]:
    now = time.time_ns() // 1_000_000
    thread = new_thread_id(now, os.urandom(10))
    environment = dict(os.environ)
    fields = inspect(
        repository,
        flow="bench",
        thread_id=thread,
        include_changes=False,
        environment=environment,
        now_ms=now,
    )
    workspace = Workspace.of(
        {"workspace": fields}, laboratory.engine.store, thread, environment=environment
    )
    if workspace is None:
        raise RuntimeError("a start record with a workspace gave none")
    workspace.ensure(None, now_ms=now)
    return workspace, None


def _status_s(tree: Path) -> float:
    begin = time.perf_counter()
    subprocess.run(["git", "status", "--porcelain"], cwd=tree, check=True, capture_output=True)
    return time.perf_counter() - begin


FIGURES = (Figure(name="snapshot", measure=snapshot),)
