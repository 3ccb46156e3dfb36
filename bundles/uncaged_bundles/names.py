"""Names of flows: one spelling that is safe as a file name, a branch name and a word on a command
line.
"""

from __future__ import annotations

import re
from typing import NewType

from .errors import UsageError
from .ids import is_bundle_hash

FlowName = NewType("FlowName", str)

MAX_NAME_CHARACTERS = 60
_KEBAB = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


_HEADS_AND_THREADS = ("head", "latest")
_VERBS = (
    *(
        "action",
        "add",
        "agents",
        "answer",
        "archive",
        "browser",
        "build",
        "completion",
        "constructions",
        "conversation",
        "demo",
        "diff",
        "disable",
        "do",
        "due",
    ),
    *(
        "doctor",
        "edit",
        "enable",
        "explain",
        "export",
        "feedback",
        "fix",
        "fork",
        "grammar",
        "graph",
        "history",
        "import",
        "init",
        "keys",
    ),
    *(
        "kill",
        "list",
        "log",
        "mcp",
        "memory",
        "model",
        "notify",
        "pack",
        "patterns",
        "pause",
        "proposal",
        "proposals",
        "prune",
        "ps",
        "queue",
        "queues",
        "random",
        "record",
        "capture",
        "compare",
        "regress",
        "remove",
        "resume",
        "rollback",
        "run",
        "serve",
    ),
    *(
        "schedule",
        "schedules",
        "shell",
        "show",
        "store",
        "test",
        "thread",
        "threads",
        "token",
        "tools",
        "verify",
        "work",
    ),
)
RESERVED = frozenset((*_HEADS_AND_THREADS, *_VERBS))
"""The verbs of the command, and the words that stand for a version or a thread."""


def new_flow_name(text: str) -> FlowName:
    """Return *text* as a name for a new flow: a flow name with no other meaning on a command line.

    An entry that an older version made under such a name is still read, and can be removed.
    """
    name = parse_flow_name(text)
    if name in RESERVED:
        raise UsageError(
            f"{text!r} cannot name a flow: the command means something else by this word; choose another, such as 'my-{text}'"
        )
    if is_bundle_hash(text.upper()):
        raise UsageError(
            f"{text!r} cannot name a flow: it could be the hash of a bundle; choose another name, such as 'my-{text}'"
        )
    return name


def parse_flow_name(text: str) -> FlowName:
    """Return *text* if it is a flow name: lower-case kebab, starts with a letter, at most 60
    characters.

    Raises:
        UsageError: it is none.
    """
    if not text:
        raise UsageError(
            "a flow needs a name, and this one is empty; use lower-case words joined by '-', such as 'solve-issue'"
        )
    if len(text) > MAX_NAME_CHARACTERS:
        raise UsageError(
            f"flow name {text[:MAX_NAME_CHARACTERS]!r}… has {len(text)} characters; at most {MAX_NAME_CHARACTERS} are allowed"
        )
    if not _KEBAB.fullmatch(text):
        raise UsageError(
            f"{text!r} is not a flow name; use lower-case words of letters and digits joined by '-': 'solve-issue'"
        )
    return FlowName(text)
