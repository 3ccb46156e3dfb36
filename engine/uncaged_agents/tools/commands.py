"""Commands of a model, in the script sandbox: they write only to the worktree, and use the network
only if allowed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks, SandboxUnavailable
from uncaged_engine.door.effects import Cancel
from uncaged_engine.services.sandbox import (
    ANY_OWNER,
    SYSTEM_DIRECTORIES,
    ScratchUser,
    ScriptBounds,
    ScriptResult,
    change_owners,
    choose,
    identities_of,
    python_prefixes,
    run_script,
    scratch_user,
)

from .working_directory import ToolError, WorkingDirectory

MEMORY_BYTES = 6 << 30
PROCESSES = 256
OUTPUT_BYTES = 4 << 20
LEFT_OUT = frozenset(
    {
        "HOME",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_RUNTIME_DIR",
    }
)
"""Variables that name places outside the sandbox; a command gets a private home."""

GIT = {
    "GIT_OPTIONAL_LOCKS": "0",  # git's own directory can be read only
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    **ANY_OWNER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Runner of commands for one answer. reads: targets of the worktree's links. writable: whether
    commands may change the worktree.
    """

    workdir: WorkingDirectory
    environment: Mapping[str, str]
    reads: tuple[Path, ...]
    writable: bool
    network: bool
    sandbox: str
    cancel: Cancel

    def run(self, argv: list[str], *, timeout_s: float, cwd: Path | None = None) -> ScriptResult:
        """Run a program to its end.

        Raises:
            ToolError: there is no such program. EnvironmentLacks: no sandbox holds here.
        """
        top = self.workdir.top
        git = git_directories(top)
        environment = {
            name: value for name, value in self.environment.items() if name not in LEFT_OUT
        }
        bounds = ScriptBounds(
            read=(
                *git,
                *self.reads,
                *program_places(environment.get("PATH", "")),
                *(() if self.writable else (top,)),
            ),
            write=(top,) if self.writable else (),
            network=self.network,
            timeout_s=timeout_s,
            memory_bytes=MEMORY_BYTES,
            processes=PROCESSES,
            output_bytes=OUTPUT_BYTES,
        )
        user = scratch_user(top)
        try:
            with guarded(top / ".git"), owned_by(top, user):
                return run_script(
                    argv,
                    bounds,
                    mechanism=choose(self.sandbox, scripts=True),
                    cwd=cwd or self.workdir.here,
                    environment={**environment, **GIT},
                    user=user,
                    stop=self.cancel.on_request,
                )
        except SandboxUnavailable as exc:
            raise EnvironmentLacks(str(exc)) from exc
        except FileNotFoundError as exc:
            raise ToolError(str(exc)) from exc


@contextmanager
def guarded(pointer: Path) -> Iterator[None]:
    """Restore the worktree's file ``.git`` after the block, as a changed one would lead the
    engine's own git to another repository.
    """
    found = os.lstat(pointer) if os.path.lexists(pointer) else None
    if found is None or not stat.S_ISREG(found.st_mode):
        yield
        return
    text = pointer.read_bytes()
    try:
        yield
    finally:
        now = os.lstat(pointer) if os.path.lexists(pointer) else None
        if (
            now is None
            or not stat.S_ISREG(now.st_mode)
            or now.st_nlink != 1
            or pointer.read_bytes() != text
        ):
            if now is not None and stat.S_ISDIR(now.st_mode):
                pointer.rename(pointer.with_name(f".git-{now.st_ino}"))
            fresh = pointer.with_name(".git.uncaged-half")
            fresh.unlink(missing_ok=True)
            fresh.write_bytes(text)
            fresh.replace(pointer)


@contextmanager
def owned_by(top: Path, user: ScratchUser) -> Iterator[None]:
    """Change the owner of the tree to *user* while the block runs, git's own files excepted. An
    ordinary user changes nothing.
    """
    if os.geteuid() != 0:
        yield
        return
    hand_over(top, user.uid, user.gid)
    try:
        yield
    finally:
        hand_over(top, 0, 0)


def hand_over(top: Path, uid: int, gid: int) -> None:
    """Change the owner of all files below *top*. Links are not followed, and a file with a second
    hard link keeps its owner.
    """

    def choose(found: os.stat_result) -> tuple[int, int] | None:
        return (
            (uid, gid)
            if found.st_uid != uid and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1)
            else None
        )

    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        change_owners(fd, choose, identities_of(top / ".git"))
    finally:
        os.close(fd)


def git_directories(top: Path) -> tuple[Path, ...]:
    """Return the paths that git reads for a worktree: the file that names its repository, and the
    repository's own directory.
    """
    pointer = top / ".git"
    if not pointer.is_file():
        return (pointer,) if pointer.is_dir() else ()
    own = Path(
        os.path.realpath(
            top / pointer.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
        )
    )
    try:
        common = Path(os.path.realpath(own / (own / "commondir").read_text("utf-8").strip()))
    except OSError:
        common = own
    return (pointer, own, common)


def program_places(path: str) -> tuple[Path, ...]:
    """Return the directories of PATH outside the system's, each with the libraries of its programs,
    but never a whole home.
    """
    found: list[Path] = []
    for name in path.split(os.pathsep):
        directory = Path(name)
        if (
            not directory.is_absolute()
            or not directory.is_dir()
            or any(directory.is_relative_to(system) for system in SYSTEM_DIRECTORIES)
        ):
            continue
        found += [
            directory,
            *(
                beside
                for beside in (directory.parent / "lib", directory.parent / "libexec")
                if beside.is_dir()
            ),
        ]
        for program in ("python", "python3"):
            if (directory / program).exists():
                found += python_prefixes(directory / program)
    return tuple(dict.fromkeys(found))
