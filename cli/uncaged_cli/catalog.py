"""Every verb with its one line of help stands here as a literal, so that `--help` and completion
import no verb.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Begin": {
        "demo": "Write a small git repository with bugs and red tests to try a flow on.",
        "init": "Write a runnable flow definition with its test.",
        "doctor": "Check this machine: store, git, sandbox, configuration, agents.",
        "agents": "List who could answer for roles here, and who does by default.",
        "keys": "Keep keys for models and services.",
        "completion": "Print the completion script for a shell.",
    },
    "Flows": {
        "add": "Register a bundle, or build a definition, a recipe or a script and register it.",
        "build": "Build a definition, a recipe or a script into a bundle.",
        "edit": "Make a new version of a flow that came from a recipe or a script.",
        "test": "Run the examples that a flow carries.",
        "list": "List the flows of the registry.",
        "show": "Show a flow: what it is, what it may do, its roles and parameters.",
        "tools": "List the flows as tools for models.",
        "mcp": "Serve flows and threads to MCP clients.",
        "graph": "Draw how the roles of a flow follow each other.",
        "history": "List the versions of a flow.",
        "diff": "Compare two versions: policy, roles, schemas, graph, source.",
        "rollback": "Point a flow at a former version.",
        "enable": "Let a disabled flow start threads again.",
        "disable": "Keep a flow from starting new threads.",
        "remove": "Take a flow out of the registry; its bundles and threads stay.",
    },
    "Threads": {
        "run": "Start a thread of a flow and follow it.",
        "threads": "List threads, newest first.",
        "ps": "List the threads that run now.",
        "thread": "Show or follow a thread, its files and branch, or remove it.",
        "pause": "Stop a thread before its next effect.",
        "resume": "Go on with a thread that stopped.",
        "answer": "Answer a thread that waits for a person, and follow it.",
        "kill": "End a thread now.",
        "fork": "Start a new thread from a step of another one.",
        "verify": "Run a thread's bundle again over its journal and compare.",
    },
    "Store": {
        "archive": "Compress the journals of threads that have ended.",
        "prune": "Remove old ended threads with their worktrees and refs.",
        "export": "Write a thread with its bundle, or a flow, into one file.",
        "import": "Take a thread or a flow in from an exported file.",
    },
}

VERBS: Mapping[str, str] = {
    name: line for section in SECTIONS.values() for name, line in section.items()
}

NEEDS: Mapping[str, str] = {
    "agents": "uncaged_agents",
    "tools": "uncaged_tools",
    "mcp": "uncaged_tools",
}
"""Verbs that are not there when this package of the distribution is not installed."""


def is_installed(verb: str) -> bool:
    """Whether the package that a verb needs is installed."""
    return verb not in NEEDS or find_spec(NEEDS[verb]) is not None


def module_of(verb: str) -> str:
    """Return the module that holds *verb*'s command."""
    return f"uncaged_cli.verbs.{verb}_" if keyword.iskeyword(verb) else f"uncaged_cli.verbs.{verb}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"``, or nothing when no known word is near."""
    import difflib

    close = difflib.get_close_matches(word.lower(), list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(repr(match) for match in close)}?" if close else ""
