"""Catalogue of the verbs with one line of help each, as literals: `--help` and completion import no
verb.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "Write a small git repository with failing tests.",
        "init": "Write an example flow definition with its test.",
        "doctor": "Check this machine: store, git, sandboxes, config, agents.",
        "agents": "List the agents on this machine, and the default one.",
        "keys": "Store keys for models and services.",
        "model": "Choose the model that answers by default, or list the models.",
        "completion": "Print the completion script for a shell.",
    },
    "Sentences": {
        "do": "Understand a sentence, run its flow and follow the thread.",
        "shell": "Talk to a conversation at a prompt, or run the lines of a pipe.",
        "action": "Run a flow as a request of the conversation, without a sentence.",
        "explain": "Show how a sentence would be read, and start nothing.",
        "pack": "Register, list, show, enable and disable packs of flows.",
        "conversation": "Make, list, show, rename, switch or delete conversations, and cancel their requests.",
        "memory": "List or search what the conversation's results named.",
        "token": "Print the tokens and the cost of the conversation's requests.",
        "feedback": "Keep an opinion of a request, and forget what misread it.",
        "random": "Print an example sentence of an enabled flow.",
        "patterns": "Suggest sentence patterns for a flow.",
        "constructions": "Show and change what was learned from a model's translations.",
    },
    "Flows": {
        "add": "Add a flow from a bundle, a definition, a recipe or a script.",
        "build": "Build a definition, a recipe or a script into a bundle.",
        "edit": "Change a flow that was built from a recipe or a script.",
        "test": "Run the examples of a flow and check their results.",
        "list": "List the flows of the registry.",
        "show": "Show a flow: description, permissions, roles, parameters.",
        "tools": "List the flows as tools for models.",
        "mcp": "Serve flows and threads to MCP clients.",
        "serve": "Serve the web page and its API on one port of this machine.",
        "graph": "Draw the graph of a flow's roles.",
        "history": "List the versions of a flow.",
        "diff": "Compare two versions: policy, roles, schemas, graph, source.",
        "rollback": "Return a flow to a former version.",
        "proposals": "List proposed versions of flows.",
        "proposal": "Show, accept or reject a proposed version of a flow.",
        "enable": "Enable a disabled flow.",
        "disable": "Disable a flow: it starts no new threads.",
        "remove": "Remove a flow from the registry; its bundles and threads stay.",
        "grammar": "Check the grammars of sentences.",
        "browser": "Start and stop browser sessions, and use their tabs.",
        "record": "Record a task in a browser as a flow, or import a recording.",
        "capture": "Make a flow of what the agent of a thread did.",
        "fix": "Propose a new version of a flow that failed, with a proof.",
    },
    "Threads": {
        "run": "Start a thread of a flow and follow it.",
        "threads": "List threads, newest first.",
        "notify": "List the threads that wait, or stopped while they were not followed.",
        "ps": "List the running threads and their current steps.",
        "log": "Print the debug logs of threads, and follow them.",
        "thread": "Show, follow, merge, pin or remove a thread.",
        "pause": "Pause threads before their next effect.",
        "resume": "Continue a thread that stopped.",
        "answer": "Answer the question of a waiting thread, and follow the thread.",
        "kill": "End threads immediately.",
        "fork": "Start a new thread from a step of an existing one.",
        "compare": "Run forks of a thread side by side and compare them.",
        "verify": "Replay a thread's bundle over its journal and compare.",
        "schedule": "Add, show, enable, disable and remove schedules of flows; set up their timer.",
        "schedules": "List the schedules of flows.",
        "due": "Start due schedules, and resume threads whose sleep has ended.",
        "regress": "Replay all past threads of a flow with its current version.",
    },
    "Store": {
        "archive": "Compress the journals of ended threads.",
        "prune": "Remove old ended threads with their worktrees and refs.",
        "export": "Export a thread with its bundle, or a flow, to a file.",
        "import": "Import a thread or a flow from a file.",
        "work": "Drive the threads of a shared store on this machine.",
        "queue": "Set limits, priority and needs of a flow's threads on a shared store.",
        "queues": "List the queues of a shared store and its workers.",
        "store": "Copy a whole store to another address, or check one.",
    },
}

VERBS: Mapping[str, str] = {
    name: line for section in SECTIONS.values() for name, line in section.items()
}

NEEDS: Mapping[str, str] = {
    "action": "uncaged_dispatcher",
    "constructions": "uncaged_dispatcher",
    "do": "uncaged_dispatcher",
    "feedback": "uncaged_dispatcher",
    "memory": "uncaged_dispatcher",
    "patterns": "uncaged_dispatcher",
    "random": "uncaged_dispatcher",
    "token": "uncaged_dispatcher",
    "conversation": "uncaged_dispatcher",
    "explain": "uncaged_dispatcher",
    "pack": "uncaged_dispatcher",
    "agents": "uncaged_agents",
    "capture": "uncaged_capture",
    "fix": "uncaged_capture",
    "compare": "uncaged_capture",
    "tools": "uncaged_tools",
    "mcp": "uncaged_tools",
    "grammar": "uncaged_dispatcher",
    "serve": "uncaged_serve",
    "schedule": "uncaged_schedules",
    "schedules": "uncaged_schedules",
    "due": "uncaged_schedules",
    "shell": "uncaged_dispatcher",
}
"""Verbs that need an optional package, with that package."""


def is_installed(verb: str) -> bool:
    """Check whether the package that a verb needs is installed."""
    return verb not in NEEDS or find_spec(NEEDS[verb]) is not None


def module_of(verb: str) -> str:
    """Return the module that holds *verb*'s command."""
    return f"uncaged_cli.verbs.{verb}_" if keyword.iskeyword(verb) else f"uncaged_cli.verbs.{verb}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"``, or nothing when no known word is near."""
    import difflib

    close = difflib.get_close_matches(word.lower(), list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(repr(match) for match in close)}?" if close else ""
