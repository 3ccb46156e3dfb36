"""Sandboxed child processes for scripts: bounds, granted roots, the lending of directories, and the
run itself.
"""

from __future__ import annotations

from ..sandbox.bounds import DEFAULT_PATH, SYSTEM_DIRECTORIES, Identity, python_prefixes
from ..sandbox.granted_paths import (
    Places,
    Refused,
    Root,
    WrittenPlaces,
    check_unchanged,
    find_roots,
)
from ..sandbox.hidden import NAME_PORT, PROCESSES, Refusal
from ..sandbox.interpreter import find_interpreter
from ..sandbox.mechanism import Mechanism, choose
from ..sandbox.ownership import change_owners, identities_of, lent, may_enter, user_for
from ..sandbox.scratch import ANY_OWNER
from ..sandbox.script import (
    ScratchUser,
    ScriptBounds,
    ScriptProcess,
    ScriptResult,
    private_directory,
    run_script,
    scratch_copy,
    scratch_user,
    start_script,
)
from ..sandbox.watch import ANY_ADDRESS, SOCKET_TABLES

__all__ = [
    "ANY_ADDRESS",
    "ANY_OWNER",
    "DEFAULT_PATH",
    "NAME_PORT",
    "PROCESSES",
    "SOCKET_TABLES",
    "SYSTEM_DIRECTORIES",
    "Identity",
    "Mechanism",
    "Places",
    "Refusal",
    "Refused",
    "Root",
    "ScratchUser",
    "ScriptBounds",
    "ScriptProcess",
    "ScriptResult",
    "WrittenPlaces",
    "change_owners",
    "check_unchanged",
    "choose",
    "find_interpreter",
    "find_roots",
    "identities_of",
    "lent",
    "may_enter",
    "private_directory",
    "python_prefixes",
    "run_script",
    "scratch_copy",
    "scratch_user",
    "start_script",
    "user_for",
]
