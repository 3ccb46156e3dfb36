"""Runner of git: clean environment, no hooks, no monitor, no signing. An error carries git's
standard error.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks, os_problem

TIMEOUT_S = 900.0
LOCK_WAIT_S = 20.0
LOCK_PAUSE_S = 0.05
SHOWN_CHARACTERS = 2000

PASSED = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR")
"""The person's git settings apply (ignored files, trusted directories); their GIT_* variables do
not.
"""

SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.fsync": "objects,reference",
    "core.fsyncMethod": "batch",
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "core.safecrlf": "false",
    "core.quotePath": "false",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
ARGUMENTS = tuple(part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}"))

IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "uncaged-workflow"), ("EMAIL", "uncaged-workflow@localhost"))
}

GITLINK = "160000 "
"""Mode of a submodule in the index."""


class WorkspaceError(EnvironmentLacks):
    """Problem with the repository, the disk or git itself; a person can fix it and resume."""


class GitError(WorkspaceError):
    """Failure of a git command. words: its standard error."""

    def __init__(self, message: str, *, words: str, code: int | None) -> None:
        super().__init__(message)
        self.words = words
        self.code = code


@contextmanager
def on_disk(path: Path) -> Iterator[None]:
    """Raise an error of the file system as a WorkspaceError."""
    try:
        yield
    except OSError as exc:
        raise WorkspaceError(os_problem(exc, path), remedy="correct that") from exc


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Runner of git in one directory.

    environment: the caller's. variables: further ones, such as GIT_DIR.
    """

    directory: Path
    environment: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        more: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (0,),
    ) -> bytes:
        """Run one command and return its standard output.

        Args:
            more: further variables for this command. accept: exit codes that are not errors.
        Raises:
            GitError: another exit code, or the timeout of a quarter of an hour. The call first
                waits for a lock held by another git.
            WorkspaceError: there is no git, or the directory is gone.
        """
        return self.speak(*arguments, stdin=stdin, more=more, accept=accept)[0]

    def line(self, *arguments: str) -> str:
        """Run one command and return its output without the line feed at the end."""
        return self.run(*arguments).decode("utf-8", "surrogateescape").removesuffix("\n")

    def submodules(self) -> tuple[str, ...]:
        """Return the paths of the submodules that the index has, relative to the top, sorted."""
        listing = self.run("ls-files", "--stage", "--full-name", "-z", "--", ":/")
        entries = listing.decode("utf-8", "surrogateescape").split("\0")
        return tuple(
            sorted(entry.partition("\t")[2] for entry in entries if entry.startswith(GITLINK))
        )

    def identity(self) -> Mapping[str, str]:
        """Return variables with the engine's name and mail address; none if the person has set both
        of their own.
        """
        settings = (
            self.run("config", "--get", key, accept=(0, 1)) for key in ("user.name", "user.email")
        )
        return {} if all(value.strip() for value in settings) else IDENTITY

    def speak(
        self,
        *arguments: str,
        stdin: bytes = b"",
        more: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (0,),
    ) -> tuple[bytes, str]:
        """Run one command as ``run`` does and return its standard output and standard error."""
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            done = self._start(arguments, stdin, more or {})
            words = done.stderr.decode("utf-8", "replace").strip()
            if done.returncode in accept:
                return done.stdout, words
            if ".lock': File exists" not in words or time.monotonic() > deadline:
                raise self._error(arguments, done.returncode, words)
            time.sleep(LOCK_PAUSE_S)

    def bounded(self, *arguments: str, stdin: bytes, most_bytes: int) -> bytes | None:
        """Run one command and return its standard output; None if that has more than *most_bytes*,
        after which the command is ended.

        Raises: as `run`.
        """
        with tempfile.TemporaryFile() as words, tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            with (
                self._present(),
                subprocess.Popen(
                    ["git", *ARGUMENTS, *arguments],
                    cwd=self.directory,
                    env=self._variables({}),
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=words,
                ) as process,
            ):
                output = b"" if process.stdout is None else process.stdout.read(most_bytes + 1)
                if len(output) > most_bytes:
                    process.kill()
                    return None
            if process.returncode == 0:
                return output
            words.seek(0)
            raise self._error(arguments, process.returncode, words.read().decode(errors="replace"))

    def _error(self, arguments: tuple[str, ...], code: int, words: str) -> GitError:
        problem = words.strip()[:SHOWN_CHARACTERS] or "it printed nothing"
        message = f"git {arguments[0]} failed in {self.directory} (exit {code}): {problem}"
        return GitError(message, words=words, code=code)

    def _variables(self, more: Mapping[str, str]) -> dict[str, str]:
        passed = {name: self.environment[name] for name in PASSED if name in self.environment}
        return {
            **passed,
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
            **self.variables,
            **more,
        }

    @contextmanager
    def _present(self) -> Iterator[None]:
        """Say which is missing, git or the directory."""
        try:
            yield
        except FileNotFoundError as exc:
            if not self.directory.is_dir():
                raise WorkspaceError(
                    f"the directory {self.directory} is gone", remedy="bring it back"
                ) from exc
            raise WorkspaceError("there is no git on PATH", remedy="install git") from exc

    def _start(
        self, arguments: tuple[str, ...], stdin: bytes, more: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            with self._present():
                return subprocess.run(
                    ["git", *ARGUMENTS, *arguments],
                    cwd=self.directory,
                    env=self._variables(more),
                    input=stdin,
                    capture_output=True,
                    timeout=TIMEOUT_S,
                    check=False,
                )
        except subprocess.TimeoutExpired as exc:
            raise GitError(
                f"git {arguments[0]} in {self.directory} took longer than {TIMEOUT_S:.0f} s",
                words="",
                code=None,
            ) from exc
