"""Working directory of a model or an agent: its paths are resolved inside the worktree through dots
and links, and any other is refused.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

MAX_FILE_BYTES = 4 << 20


class ToolError(Exception):
    """A tool call failed; the message is for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingDirectory:
    """Working directory. top: the worktree, with links in its own path resolved. here: where
    relative paths start, in the worktree.
    """

    top: Path
    here: Path

    @classmethod
    def around(cls, directory: Path) -> WorkingDirectory:
        """Return the working directory *directory* in its worktree; without git that is the
        directory itself.
        """
        here = Path(os.path.realpath(directory))
        return cls(
            top=next(
                (path for path in (here, *here.parents) if os.path.lexists(path / ".git")), here
            ),
            here=here,
        )

    def resolve(self, name: str) -> Path:
        """Return the real path of *name*, which need not exist.

        Raises:
            ToolError: it lies outside the worktree, or belongs to git.
        """
        if "\0" in name:
            raise ToolError("a path cannot hold a null character")
        try:
            path = Path(os.path.realpath(self.here / name))
        except (OSError, ValueError, RuntimeError) as exc:
            raise ToolError(f"{name!r} is no usable path: {exc}") from exc
        if not path.is_relative_to(self.top):
            raise ToolError(
                f"{name!r} leads out of the working tree; only what is inside {self.top} can be used"
            )
        if any(part.lower() == ".git" for part in path.relative_to(self.top).parts):
            raise ToolError(
                f"{name!r} belongs to git; look at it with git in a command, and leave it alone"
            )
        return path

    def name(self, path: Path) -> str:
        """Return a real path for display."""
        return os.path.relpath(path, self.here)

    def read(self, name: str) -> str:
        """Return the text of a regular file."""
        path = self.resolve(name)
        try:
            # a pipe must not be waited for
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise ToolError(f"there is no file {name!r}") from None
        except OSError as exc:
            raise ToolError(f"{name!r} cannot be read: {exc.strerror}") from exc
        try:
            found = os.fstat(handle)
            if stat.S_ISDIR(found.st_mode):
                raise ToolError(f"{name!r} is a directory; list it")
            if not stat.S_ISREG(found.st_mode):
                raise ToolError(f"{name!r} is not a regular file")
            if found.st_size > MAX_FILE_BYTES:
                raise ToolError(
                    f"{name!r} has {found.st_size} bytes, more than {MAX_FILE_BYTES}; look at parts of it with a command"
                )
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(MAX_FILE_BYTES + 1)
        finally:
            os.close(handle)
        if b"\0" in data[:8192]:
            raise ToolError(f"{name!r} is not a text file")
        try:
            return data.decode()
        except UnicodeDecodeError as exc:
            raise ToolError(f"{name!r} is not UTF-8 text (byte {exc.start})") from exc

    def write(self, name: str, text: str) -> Path:
        """Write a regular file, with the directories above it. A file that exists keeps its
        mode.
        """
        path = self.resolve(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666
            )
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise ToolError(f"{name!r} is not a regular file")
                with os.fdopen(handle, "wb", closefd=False) as file:
                    file.truncate()
                    file.write(text.encode("utf-8", "backslashreplace"))
            finally:
                os.close(handle)
        except OSError as exc:
            raise ToolError(f"{name!r} cannot be written: {exc.strerror}") from exc
        return path
