"""Private directory that all processes of one user on this machine share; other users cannot write
to it.

It is in the first of these that exists: ``XDG_RUNTIME_DIR``; ``/run/user/UID``, so that a timer's
job and a login use the same; ``/tmp``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from uncaged_bundles.errors import RefusedError

VARIABLE = "XDG_RUNTIME_DIR"
LOGINS = Path("/run/user")
SHORT = Path("/tmp")  # noqa: S108 - ours inside it is checked; `tempfile` tries directories out, and two processes might find two


def runtime_directory(
    environment: Mapping[str, str], *, max_bytes: int | None = None, own: Path | None = None
) -> Path:
    """Return the directory; it is created if it is missing.

    Args:
        environment: may have ``XDG_RUNTIME_DIR``.
        max_bytes: limit of the path, for a socket in it.
        own: the directory to use if the system has none; by default ``/tmp/uncaged-UID``, on which
            all processes agree.
    Raises:
        RefusedError: another user made it, or can read it.
    """
    fits = (
        path
        for path in _wanted(environment)
        if max_bytes is None or len(os.fsencode(path)) <= max_bytes
    )
    path = next(fits, own or SHORT / f"uncaged-{os.getuid()}")
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(
            f"{path} is not a directory of yours alone; remove it, or set {VARIABLE} to a directory that is"
        )
    return path


def _wanted(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield our directory in each directory that the system made for this user; after `su`, the
    variable may still name another user's.
    """
    named = environment.get(VARIABLE, "")
    for base in (*([Path(named)] if named.startswith("/") else ()), LOGINS / str(os.getuid())):
        with suppress(OSError):
            found = base.stat()
            if (
                stat.S_ISDIR(found.st_mode)
                and found.st_uid == os.getuid()
                and not found.st_mode & 0o022
            ):
                yield base / "uncaged"
