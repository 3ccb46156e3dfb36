"""Sandboxed child processes for scripts: bounds, granted paths and their owner, and the run
itself.
"""

from __future__ import annotations

from ..sandbox.bounds import DEFAULT_PATH, SYSTEM_DIRECTORIES, Identity, python_prefixes
from ..sandbox.granted_paths import (
    GrantedPath,
    GrantedPaths,
    Refused,
    WrittenDirectories,
    check_unchanged,
    open_granted_paths,
)
from ..sandbox.hidden import NAME_PORT, PROCESSES, Refusal
from ..sandbox.interpreter import find_interpreter
from ..sandbox.mechanism import Mechanism, choose
from ..sandbox.ownership import change_owners, identities_of, may_enter, temporary_owner, user_for
from ..sandbox.scratch import ANY_OWNER, BROWSER_UIDS
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
    "BROWSER_UIDS",
    "DEFAULT_PATH",
    "NAME_PORT",
    "PROCESSES",
    "SOCKET_TABLES",
    "SYSTEM_DIRECTORIES",
    "GrantedPath",
    "GrantedPaths",
    "Identity",
    "Mechanism",
    "Refusal",
    "Refused",
    "ScratchUser",
    "ScriptBounds",
    "ScriptProcess",
    "ScriptResult",
    "WrittenDirectories",
    "change_owners",
    "check_unchanged",
    "choose",
    "find_interpreter",
    "identities_of",
    "may_enter",
    "open_granted_paths",
    "private_directory",
    "python_prefixes",
    "run_script",
    "scratch_copy",
    "scratch_user",
    "start_script",
    "temporary_owner",
    "user_for",
]
