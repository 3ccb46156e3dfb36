"""Check of bubblewrap's mounts from outside, after all are made and before anything runs inside.

A mount follows links. A granted path in a directory that another script writes may become a link
just then, and its mount would cover a library of the interpreter that runs our last code. So every
mount must be at its intended place.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from uncaged_bundles.errors import RefusedError

NEW_ROOT, OLD_ROOT = "/newroot", "/oldroot"
"""Bubblewrap's paths, during the mounting, of the future root directory and of the machine's."""
_ITS_OWN = ("/dev", "/proc")
_PLACED_ONCE = ("", "/tmp")  # noqa: S108 - inside
_OCTAL = re.compile(rb"\\([0-7]{3})")


class MountBarrier:
    """Pipe with the script's /etc/passwd; bubblewrap reads it after all other mounts, and blocks
    until `release`.

    read_fd: for bubblewrap; the caller closes it. places: the intended mounts, with bubblewrap's
    options.
    """

    def __init__(
        self, accounts: bytes, places: Mapping[str, str], links: Sequence[tuple[Path, str]]
    ) -> None:
        self.places, self._links = places, links
        self.read_fd, write_fd = os.pipe()
        self._write_fd: int | None = write_fd
        # one page, which is full: space in it means that bubblewrap reads
        fcntl.fcntl(write_fd, fcntl.F_SETPIPE_SZ, 4096)
        os.write(write_fd, accounts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    @property
    def mounts_accounts(self) -> bool:
        """Return whether the file is mounted; not if the machine's own was granted."""
        return self.places.keys().isdisjoint(("/etc/passwd", "/etc", "/"))

    def check(self, pid: int, timeout_s: float) -> None:
        """Wait until bubblewrap has made all mounts, or has failed, and check their places.

        Raises:
            RefusedError: a mount is at another place.
        """
        if self._write_fd is None:
            raise ValueError("it was released before")
        if not self.mounts_accounts:
            return
        poll = select.poll()
        poll.register(self._write_fd, select.POLLOUT)
        poll.poll(timeout_s * 1000)
        try:
            mounts = Path(f"/proc/{pid}/mountinfo").read_bytes()
        except (OSError, ValueError):  # bubblewrap failed; its error is read later
            return
        if (place := misplaced(mounts, self.places, self._links)) is not None:
            raise RefusedError(
                f"the granted path {place!r} was replaced by something else just now; nothing was run"
            )

    def release(self) -> None:
        if self._write_fd is not None:
            os.close(self._write_fd)
            self._write_fd = None


def misplaced(
    mounts: bytes, places: Collection[str], links: Sequence[tuple[Path, str]]
) -> str | None:
    """Return a place whose mount is missing, or where an unexpected mount is; None if all are as
    intended.

    Args:
        mounts: the ``mountinfo`` of a process that bubblewrap prepares. places: the intended
            mounts.
        links: those of the root directory, with their targets.
    """
    made = list(_read(mounts))
    machine = [
        point.removeprefix(OLD_ROOT) for point, _ in made if point.startswith(f"{OLD_ROOT}/")
    ]
    wanted = {_inside_path(place, links): place for place in places}
    found: dict[str, str] = {}
    for point, content in made:
        if point != NEW_ROOT and not point.startswith(f"{NEW_ROOT}/"):
            continue
        where = point.removeprefix(NEW_ROOT)
        if any(where == own or where.startswith(f"{own}/") for own in _ITS_OWN) or _is_submount(
            where, wanted, machine
        ):
            continue
        if (where not in wanted and where not in _PLACED_ONCE) or found.setdefault(
            where, content
        ) != content:
            return next(
                (place for inside, place in wanted.items() if not _is_made(inside, made)),
                where or "/",
            )
    return None


def _is_made(inside: str, made: Collection[tuple[str, str]]) -> bool:
    return any(point == f"{NEW_ROOT}{inside}" for point, _ in made)


def _is_submount(where: str, wanted: Mapping[str, str], machine: Collection[str]) -> bool:
    """Return whether a mount of the machine came with a bind of a directory above it."""
    for inside, place in wanted.items():
        if (
            where.startswith(f"{inside}/")
            and f"{os.path.realpath(place)}{where.removeprefix(inside)}" in machine
        ):
            return True
    return False


def _inside_path(place: str, links: Sequence[tuple[Path, str]]) -> str:
    """Return a place as it is inside, through the links of the root directory; no other links are
    followed.
    """
    for link, target in links:
        if place == str(link) or place.startswith(f"{link}/"):
            return os.path.normpath(f"/{target}{place.removeprefix(str(link))}")
    return "" if place == "/" else place


def _read(mounts: bytes) -> Iterator[tuple[str, str]]:
    """Yield the place of each mount, and its source: a device and a path on it."""
    for line in mounts.splitlines():
        _, _, device, root, point, *_ = line.split(b" ")
        yield _text(point), _text(device + b" " + root)


def _text(word: bytes) -> str:
    return os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), word))
