"""Inside the sandbox: with Landlock the process denies itself the file system, all but a list, and signals and sockets of others.

Runs as compiled code handed over by the parent; imports nothing of ours.
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


def restrict(syscall: Callable[..., int], numbers: Mapping[str, int], settings: Mapping[str, Any]) -> None:
    """Allow the listed paths, deny the rest, for ever.

    Args:
        settings: abi; files, network, scopes: what is denied (bits); rules: pairs of path and the rights that it keeps.
    """
    handled = (settings["files"], settings["network"], settings["scopes"])
    ruleset = syscall(numbers["landlock_create_ruleset"], b"".join(word.to_bytes(8, "little") for word in handled), 24, 0)
    for path, rights in settings["rules"]:
        try:
            place = posix.open(path, posix.O_PATH | posix.O_CLOEXEC)
        except FileNotFoundError:
            continue
        rule = rights.to_bytes(8, "little") + place.to_bytes(4, "little")
        syscall(numbers["landlock_add_rule"], ruleset, RULE_PATH_BENEATH, rule, 0)
        posix.close(place)
    syscall(numbers["landlock_restrict_self"], ruleset, QUIET if settings["abi"] >= QUIET_FROM_ABI else 0)
    posix.close(ruleset)
