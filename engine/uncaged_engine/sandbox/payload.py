"""Payload of a started process: one message with compiled code, system call numbers and settings,
sent before the lockdown.
"""

from __future__ import annotations

import functools
import importlib.util
import marshal
from collections.abc import Iterable, Mapping
from types import CodeType

from uncaged_bundles.errors import SandboxUnavailable

from .syscalls import number_of

LOADER = (
    "import io,marshal,sys;"
    "r=io.open(int(sys.argv[1]),'rb',65536);p=marshal.loads(r.read(int(r.readline())));"
    "g={'__name__':'inside'};exec(p['main'],g);g['main'](p,r,int(sys.argv[2]))"
)
"""Program on the interpreter's command line; all other code comes compiled through a pipe, since
none of our files are mounted.
"""

_CALLS = (
    *(
        "prctl",
        "prlimit64",
        "socket",
        "setgroups",
        "setresuid",
        "setresgid",
        "capset",
        "seccomp",
        "sendmsg",
    ),
    *("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"),
)

_FILTERED = (
    "truncate",
    "ftruncate",
    "rename",
    "renameat2",
    "link",
    "linkat",
    "ioctl",
    "connect",
    "bind",
    "kill",
    "tgkill",
)


def make_payload(main: str, modules: Iterable[str], settings: Mapping[str, object]) -> bytes:
    """Return the message that LOADER reads.

    Args:
        main: the module whose ``main`` runs. modules: others that it loads by itself.
    """
    codes = {name: code_of(name) for name in modules}
    data = marshal.dumps({"main": code_of(main), "modules": codes, "settings": settings})
    return b"%d\n%b" % (len(data), data)


def call_numbers(machine: str) -> dict[str, int]:
    """Return the numbers of the system calls that the code inside makes by number."""
    return _numbers(_CALLS, machine)


def filtered_calls(machine: str) -> dict[str, int]:
    """Return the numbers of calls that an older Landlock lets pass, so that only the filter refuses
    them.
    """
    return _numbers(_FILTERED, machine)


def _numbers(names: Iterable[str], machine: str) -> dict[str, int]:
    return {name: number for name in names if (number := number_of(name, machine)) is not None}


@functools.cache
def code_of(name: str) -> CodeType:
    """Return the compiled code of a module that runs inside, from the bytecode cache if it is
    there.
    """
    full = f"{__package__}.{name}"
    spec = importlib.util.find_spec(full)
    loader = None if spec is None else spec.loader
    code = loader.get_code(full) if loader is not None and hasattr(loader, "get_code") else None
    if not isinstance(code, CodeType):
        raise SandboxUnavailable(
            f"{name}.py is missing from this installation; install uncaged-workflow again"
        )
    return code
