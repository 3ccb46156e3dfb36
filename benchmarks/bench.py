"""Settings of a benchmark run: a directory on disk, one in memory, full or quick."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .laboratory import Laboratory
from .table import Row

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a tmpfs on every Linux; directories in it are made by tempfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Settings of a run.

    disk: a directory on a real disk. memory: one on tmpfs. quick: fewer rounds of fewer steps.
    """

    disk: Path
    memory: Path
    quick: bool

    def rounds(self, full: int) -> range:
        return range(min(3, full) if self.quick else full)

    def scaled(self, full: int) -> int:
        """Scale a number of steps, threads or files."""
        return max(1, full // 5) if self.quick else full

    @contextmanager
    def laboratory(self, *, in_memory: bool = False) -> Iterator[Laboratory]:
        with self.directory(in_memory=in_memory) as directory:
            laboratory = Laboratory(directory=directory)
            try:
                yield laboratory
            finally:
                laboratory.close()

    @contextmanager
    def directory(self, *, in_memory: bool = False) -> Iterator[Path]:
        where = self.memory if in_memory else self.disk
        with tempfile.TemporaryDirectory(
            prefix="uncaged-bench-", dir=where, ignore_cleanup_errors=True
        ) as name:
            yield Path(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure; it may have several rows."""

    name: str
    measure: Callable[[Bench], Sequence[Row]]


def filesystem_of(path: Path) -> str:
    """Return the type of the file system of *path*."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines():
        fields = line.split(" ")
        place = fields[1].replace("\\040", " ")
        if path.is_relative_to(place) and len(place) >= len(best):
            best, kind = place, fields[2]
    return kind
