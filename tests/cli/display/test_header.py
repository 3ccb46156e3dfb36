"""Header line of a thread."""

from __future__ import annotations

import pytest
from uncaged_cli.display.header import describe_agents, header_line

START = {"threadId": "01T", "name": "solve-issue", "hash": "C9NMV6V2TQT81", "sandbox": "bubblewrap"}


def test_the_first_line_says_what_runs_where_and_by_whom() -> None:
    """Thread, version, sandbox, agent and the reason for it."""
    agents = {
        "default": {
            "name": "repair",
            "use": "repair",
            "settings": {},
            "reason": "no key and no coding agent found",
        },
        "roles": {},
    }
    assert header_line({**START, "agents": agents}) == (
        "thread 01T: solve-issue@C9NMV6V2TQT81, sandbox bubblewrap, agent repair (no key and no coding agent found)"
    )


def test_a_fork_says_where_it_came_from() -> None:
    """The header of a fork has the source thread and the step."""
    line = header_line({**START, "forkFrom": {"threadId": "01S", "seq": 2, "chain": "X"}})
    assert line.endswith("sandbox bubblewrap, fork of 01S at step 2")
    line = header_line(
        {**START, "forkFrom": {"threadId": "01S", "seq": 2, "chain": "X", "instead": True}}
    )
    assert line.endswith("fork of 01S at step 2, its outcome replaced")


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        (None, ""),
        ({}, ""),
        (
            {"default": {"name": "repair", "use": "repair", "reason": ""}, "roles": {}},
            "agent repair",
        ),
        (
            {
                "default": {"name": "repair", "reason": "asked for"},
                "roles": {"coder": {"name": "claude", "reason": "config.yaml: roles.coder"}},
            },
            "agent repair (asked for), coder by claude (config.yaml: roles.coder)",
        ),
        (
            {
                "default": {
                    "name": "codex",
                    "reason": "asked for",
                    "limits": "told of the policy's tools, not held to it",
                },
                "roles": {},
            },
            "agent codex (asked for; told of the policy's tools, not held to it)",
        ),
        (
            {
                "default": {
                    "name": "acp",
                    "use": "acp",
                    "settings": {"argv": ["/a b/agent", "-k", "v"]},
                    "reason": "asked for",
                },
                "roles": {
                    "coder": {
                        "name": "scripted",
                        "use": "scripted",
                        "settings": {"file": "/a.yaml"},
                        "reason": "asked for",
                    }
                },
            },
            "agent acp '/a b/agent' (asked for), coder by scripted /a.yaml (asked for)",
        ),
    ],
)
def test_agents_are_named_default_first(agents: object, words: str) -> None:
    """A flow without agents says nothing about them."""
    assert describe_agents(agents) == words


def test_a_start_record_cannot_steer_the_terminal() -> None:
    """The line comes from a journal, so it is cleaned."""
    assert "\x1b" not in header_line({**START, "name": "x\x1b[2J\ny"})
