"""Working copies of the repository for test runs in the script sandbox. The worktree itself is
never written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks, RefusedError, UncagedError
from uncaged_engine.services.processes import full_disk
from uncaged_engine.services.sandbox import (
    Mechanism,
    ScratchUser,
    ScriptBounds,
    ScriptProcess,
    scratch_copy,
    scratch_user,
    start_script,
)

from ..project.paths import LEFT_OUT, virtual_environments

MEMORY_BYTES = 6 << 30
PROCESSES = 128
LARGE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingCopy:
    """Copy with a home and a temporary directory of its own. pristine: the same files, read-only
    and shared by all copies. bytecode: directory that tests fill with the modules' bytecode.
    """

    repository: Path
    home: Path
    temporary: Path
    pristine: Path
    user: ScratchUser
    mechanism: Mechanism
    bytecode: Path | None = None

    def start(
        self,
        argv: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        read: Sequence[Path],
    ) -> ScriptProcess:
        """Start a program in the sandbox. It may write to this copy alone and has no network."""
        bounds = ScriptBounds(
            read=(self.pristine, *read),
            write=(
                self.repository,
                self.home,
                self.temporary,
                *([self.bytecode] if self.bytecode else []),
            ),
            memory_bytes=MEMORY_BYTES,
            processes=PROCESSES,
        )
        everywhere = {**environment, "HOME": str(self.home), "TMPDIR": str(self.temporary)}
        return start_script(
            argv,
            bounds,
            mechanism=self.mechanism,
            cwd=directory,
            environment=everywhere,
            user=self.user,
        )

    def renew(self) -> None:
        """Make the copy anew, after a change that was not reverted."""
        for directory in (self.repository, self.home, self.temporary):
            shutil.rmtree(directory, ignore_errors=True)
        scratch_copy(self.pristine, self.repository)
        _make_private(self.user, self.home, self.temporary)


class WorkingCopies:
    """Owner of the copies for one answer; leaving the ``with`` block removes them."""

    def __init__(self, top: Path, place: Path, mechanism: Mechanism) -> None:
        self._top, self._place, self._mechanism = top, place, mechanism
        self.pristine = place / "pristine"
        self._user = ScratchUser(uid=os.geteuid(), gid=os.getegid())

    def __enter__(self) -> WorkingCopies:
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir(parents=True, mode=0o700)
        self._user = scratch_user(self._place)
        if os.geteuid() == 0:
            os.chown(self._place, self._user.uid, self._user.gid)
        try:
            scratch_copy(
                self._top, self.pristine, skip={*LEFT_OUT, *virtual_environments(self._top)}
            )
        except RefusedError:
            shutil.rmtree(self._place, ignore_errors=True)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Raises: EnvironmentLacks: the disk became full, so that no test result counts."""
        problem = full_disk([self._place])
        shutil.rmtree(self._place, ignore_errors=True)
        if problem is not None and (kind is None or issubclass(kind, UncagedError)):
            raise EnvironmentLacks(problem, remedy="make room")

    def open(self, number: int, *, fill_bytecode: bool = False) -> WorkingCopy:
        """Make the copy *number*."""
        base = self._place / f"copy-{number}"
        _make_private(self._user, base)
        working_copy = WorkingCopy(
            repository=base / "repository",
            home=base / "home",
            temporary=base / "temporary",
            pristine=self.pristine,
            user=self._user,
            mechanism=self._mechanism,
            bytecode=base / "bytecode" if fill_bytecode else None,
        )
        if working_copy.bytecode is not None:
            _make_private(self._user, working_copy.bytecode)
        working_copy.renew()
        return working_copy

    def large(self) -> bool:
        """Return whether another copy of the repository would be expensive."""
        total = 0
        for directory, _, files in os.walk(self.pristine):
            for name in files:
                total += Path(directory, name).lstat().st_size
            if total > LARGE_BYTES:
                return True
        return False


def _make_private(user: ScratchUser, *directories: Path) -> None:
    for directory in directories:
        directory.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(directory, user.uid, user.gid)
