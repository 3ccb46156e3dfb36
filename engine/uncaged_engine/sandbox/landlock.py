"""Landlock domain, inside the sandbox: denies the file system except for a list of paths, and
signals and sockets of other processes.

Runs as compiled code sent by the parent; imports nothing of ours.
"""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

READ_FILE = 1 << 2
READ_DIRECTORY = 1 << 3
ALL_FILE_RIGHTS = (1 << 16) - 1
ALL_NETWORK_RIGHTS = 0b11
ALL_SCOPES = 0b11  # abstract unix sockets, signals
RULE_PATH_BENEATH = 1
QUIET_FROM_ABI = 7
QUIET = 1  # refusals are expected here; they need no audit record
FILE_RIGHTS_OF_ABI = (
    0,
    (1 << 13) - 1,
    (1 << 14) - 1,
    (1 << 15) - 1,
    (1 << 15) - 1,
    ALL_FILE_RIGHTS,
)
"""Rights that each version can deny: 2 adds moving and linking between directories, 3 truncating, 5
device controls.
"""
NETWORK_FROM_ABI = 4
SCOPES_FROM_ABI = 6


def restrict(
    syscall: Callable[..., int], numbers: Mapping[str, int], settings: Mapping[str, Any]
) -> None:
    """Allow the listed paths and deny the rest, irrevocably.

    Args:
        settings: abi; files, network, scopes: the denied rights (bits that this version knows);
            rules: pairs of path and the rights that it keeps; identities: the expected device and
                inode of some of the paths.
    Raises:
        LookupError: a path is another object; names the path.
    """
    identities = settings.get("identities", {})
    handled = settings["files"].to_bytes(8, "little")
    if settings["abi"] >= NETWORK_FROM_ABI:
        handled += settings["network"].to_bytes(8, "little")
    if settings["abi"] >= SCOPES_FROM_ABI:
        handled += settings["scopes"].to_bytes(8, "little")
    ruleset = syscall(numbers["landlock_create_ruleset"], handled, len(handled), 0)
    for path, rights in settings["rules"]:
        try:
            place = posix.open(path, posix.O_PATH | posix.O_CLOEXEC)
        except FileNotFoundError:
            continue
        found = posix.fstat(place)
        if path in identities and identities[path] != (found.st_dev, found.st_ino):
            raise LookupError(path)
        rule = rights.to_bytes(8, "little") + place.to_bytes(4, "little")
        syscall(numbers["landlock_add_rule"], ruleset, RULE_PATH_BENEATH, rule, 0)
        posix.close(place)
    syscall(
        numbers["landlock_restrict_self"],
        ruleset,
        QUIET if settings["abi"] >= QUIET_FROM_ABI else 0,
    )
    posix.close(ruleset)
