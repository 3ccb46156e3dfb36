from __future__ import annotations

import pytest
from uncaged_bundles.errors import BundleError
from uncaged_bundles.policy import Policy, parse_policy, widening
from uncaged_bundles.rights import ALL_TOOLS, TOOLS, Rights


def role(**limits: object) -> Policy:
    return parse_policy({"role": limits})


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("serach", r"policy\.role\.tools\[1\]: 'serach' is no tool; did you mean 'search'\?"),
        ("Read", r"'Read' is no tool; did you mean 'read'\?"),
        ("execute", r"'execute' is no tool; did you mean 'run'\?"),
        ("Bash", r"'Bash' is no tool; did you mean 'run'\?"),
        ("network", r"'network' is no tool; did you mean \"network\": True beside tools\?"),
        ("sandbox", r"did you mean \"sandbox\": True beside tools\?"),
        ("ask", r"did you mean \"outside\": \"ask\" beside tools\?"),
        (
            "top-stories",
            r"'top-stories' is no tool; tools are list, read, .*commit, and a flow is written 'flow:top-stories'",
        ),
        (
            "flow:Top Stories",
            r"'flow:Top Stories' names no flow; a flow among the tools is written 'flow:top-stories'",
        ),
        ("", r"'' is no tool; tools are list"),
    ],
)
def test_a_word_that_is_no_tool_is_refused_with_the_right_one(word: str, message: str) -> None:
    """When a bundle is added, not when a role is asked."""
    with pytest.raises(BundleError, match=message):
        role(tools=["read", word])


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"tools": "read"}, r"policy\.role\.tools: must be a list of texts"),
        ({"network": ["a.com"]}, r"policy\.role\.network: must be True or False"),
        ({"sandbox": "yes"}, r"policy\.role\.sandbox: must be True or False"),
        ({"outside": "allow"}, r"policy\.role\.outside: 'allow' is not one of refuse, ask"),
    ],
)
def test_each_limit_has_a_shape(limits: dict[str, object], message: str) -> None:
    """A role's limits are checked by rules of their own; a script's limits of equal names have
    others.
    """
    with pytest.raises(BundleError, match=message):
        role(**limits)
    parse_policy({"script": {"network": ["a.com"]}})


def test_tools_are_a_whole_list_and_the_rest_stands_beside_it() -> None:
    """Left out means all; an empty list means none; neither says anything about network, sandbox
    and what is outside.
    """
    assert Rights.of({}) == ALL_TOOLS
    assert all(ALL_TOOLS.may(tool) for tool in TOOLS)
    none = Rights.of({"tools": [], "network": True, "outside": "ask"})
    assert not any(none.may(tool) for tool in TOOLS)
    assert (none.network, none.ask, none.sandbox) == (True, True, False)
    some = Rights.of({"tools": ["read", "write", "flow:a"], "sandbox": True})
    assert (some.usable(writable=True), some.usable(writable=False), some.flows) == (
        ("read", "write"),
        ("read",),
        ("a",),
    )


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            {"tools": ["read"]},
            {"tools": ["read", "run", "edit"]},
            ["role: its agents may now also use edit, run (before: read)"],
        ),
        ({"tools": []}, {}, ["role: its agents may now use all tools (before: none)"]),
        ({}, {"tools": ["read"]}, []),
        ({"tools": ["read", "run"]}, {"tools": ["run"]}, []),
        ({}, {"tools": ["flow:a", "flow:b"]}, ["role: its agents may start the flows a, b"]),
        ({"tools": ["flow:a"]}, {"tools": ["flow:b"]}, ["role: its agents may start the flow b"]),
        (
            {"tools": ["flow:a"]},
            {"tools": ["flow:*"]},
            ["role: its agents may start all enabled flows that are not marked with --confirm"],
        ),
        ({"tools": ["flow:*"]}, {"tools": ["flow:a"]}, []),
        ({}, {"network": True}, ["role: its agents' tools and commands may use the network"]),
        ({"network": True}, {"network": False}, []),
        ({}, {"sandbox": True}, []),
        (
            {"sandbox": True},
            {"sandbox": False},
            ["role: commands of coding agents no longer have to run in the sandbox"],
        ),
        (
            {},
            {"outside": "ask"},
            ["role: its agents may ask you for what lies outside the workspace"],
        ),
        ({"outside": "ask"}, {"outside": "refuse"}, []),
    ],
)
def test_what_is_wider_is_said_in_plain_sentences(
    before: dict[str, object], after: dict[str, object], told: list[str]
) -> None:
    """Each wider right has a sentence; narrower rights need no consent."""
    assert list(widening(role(**before), role(**after))) == told


def test_the_first_version_says_what_narrows_it_and_what_it_may_besides() -> None:
    """The role itself gives one sentence, and so does each right beyond its workspace."""
    told = widening(
        None,
        role(
            workspace="read",
            tools=["run", "read", "flow:a"],
            sandbox=True,
            outside="ask",
            network=True,
        ),
    )
    assert told == (
        "role: may ask agents to answer for roles; workspace: read; tools: read, run; commands: in the sandbox alone",
        "role: its agents may start the flow a",
        "role: its agents' tools and commands may use the network",
        "role: its agents may ask you for what lies outside the workspace",
    )
