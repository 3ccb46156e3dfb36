from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from uncaged_bundles.errors import BundleError
from uncaged_bundles.limits import KNOWN_EFFECTS, Limits
from uncaged_bundles.policy import Policy, is_pure, parse_policy, refusal, widening
from uncaged_bundles.shapes import ShapeError


def policy(**limits: object) -> Policy:
    return parse_policy(limits)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], r"policy: must be a mapping"),
        ({"htpp": {}}, r"policy\.htpp: 'htpp' is not an effect; known effects: all, ask"),
        ({"http": None}, r"policy\.http: must be a mapping"),
        ({"http": {"host": []}}, r"policy\.http\.host: unknown key 'host'; known here: hosts"),
        ({"http": {"hosts": "a.com"}}, r"policy\.http\.hosts: must be a list of texts"),
        ({"http": {"hosts": ["a.com", 1]}}, r"policy\.http\.hosts\[1\]: must be text"),
        (
            {"http": {"secrets": {"GITHUB": "a.com"}}},
            r"policy\.http\.secrets\.GITHUB: must be a list",
        ),
        ({"http": {"private": 1}}, r"policy\.http\.private: must be True or False"),
        ({"http": {"timeout_s": True}}, r"policy\.http\.timeout_s: must be a positive number"),
        ({"http": {"maxBytes": -1}}, r"policy\.http\.maxBytes: must be a positive number"),
        ({"http": {"timeout_s": float("inf")}}, r"policy\.http\.timeout_s: inf is no JSON number"),
        (
            {"role": {"workspace": "all"}},
            r"policy\.role\.workspace: 'all' is not one of none, read, write",
        ),
        ({"search": {"any": 1}}, r"policy\.search\.any: unknown key 'any'; known here: none"),
        ({"trusted": "yes"}, r"policy\.trusted: must be True or False"),
        ({1: {}}, r"policy: has the key 1; keys must be text"),
        ({"output": {}}, r"policy\.output: 'output' is not an effect"),
    ],
)
def test_a_slip_of_the_pen_is_no_limit(raw: object, message: str) -> None:
    """An unknown kind or key, or a limit of the wrong shape, is an error with its dotted path."""
    with pytest.raises(BundleError, match=message):
        parse_policy(raw)


def test_an_effect_of_another_distribution_has_its_own_keys() -> None:
    """The limits of a foreign effect have the shapes of its own class, and its meaning is in its
    own words.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class MailLimits(Limits):
        meaning = "send mail"
        hosts: Mapping[str, int]

    known = {**KNOWN_EFFECTS, "mail": MailLimits}
    parsed = parse_policy({"mail": {"hosts": {"smtp": 25}}}, known)
    assert parsed.limits["mail"] == {"hosts": {"smtp": 25}}
    assert widening(None, parsed, known) == ("mail: may send mail; hosts: smtp for 25",)
    assert widening(None, parsed) == ("mail: may perform the effect 'mail'; hosts: smtp for 25",)
    with pytest.raises(
        ShapeError, match=r"policy\.mail\.hosts\.smtp: must be a whole number, not '25'"
    ):
        parse_policy({"mail": {"hosts": {"smtp": "25"}}}, known)


def test_an_absent_kind_is_refused_in_words() -> None:
    """The sentence names the effect and shows how to declare it; a declared kind and output
    pass.
    """
    sentence = refusal(policy(http={}), "role")
    assert sentence is not None
    assert "'role'" in sentence
    assert '"policy": {"role": {}}' in sentence
    assert refusal(policy(http={}), "http") is None
    assert refusal(policy(), "output") is None


def test_an_empty_policy_is_pure() -> None:
    """Nothing is asked, so nothing has to be granted; trust alone is something."""
    assert is_pure(policy())
    assert not is_pure(policy(null={}))
    assert not is_pure(policy(trusted=True))
    assert is_pure(policy(trusted=False))


def test_the_first_version_is_told_in_full() -> None:
    """Without a former version every kind is new, with its limits."""
    told = widening(
        None,
        policy(
            role={"workspace": "write"},
            http={"hosts": ["a.com", "b.com"], "secrets": {"KEY": ["a.com"]}},
        ),
    )
    assert told == (
        "role: may ask agents to answer for roles; workspace: write",
        "http: may send requests to web servers; hosts: a.com, b.com; secrets: KEY for a.com",
    )
    assert widening(None, policy()) == ()


def test_hosts_that_are_not_named_are_told() -> None:
    """A policy without them is the widest there is, and must not look like the narrowest."""
    assert widening(None, policy(http={})) == (
        "http: may send requests to web servers; hosts: any public one",
    )
    assert widening(None, policy(fetch={"private": True})) == (
        "fetch: may read web pages; hosts: any, those of this machine and its network too; private: yes",
    )
    assert widening(None, policy(http={"hosts": []})) == (
        "http: may send requests to web servers; hosts: nothing",
    )
    assert widening(policy(http={"hosts": ["a.com"]}), policy(http={})) == (
        "http: hosts is no longer set (was a.com)",
    )


def test_trust_is_told_first() -> None:
    """Running outside the sandbox is the widest thing that can be asked."""
    told = widening(policy(null={}), policy(null={}, search={}, trusted=True))
    assert told[0].startswith("trusted: runs outside the sandbox")
    assert told[1] == "search: may search the web"
    assert widening(policy(trusted=True), policy(trusted=True)) == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"http": {"hosts": ["a", "b"]}}, {"http": {"hosts": ["b"]}}),
        ({"http": {"hosts": ["a", "b"]}}, {"http": {"hosts": ["b", "a"]}}),
        ({"http": {"secrets": {"K": ["a"], "L": ["a"]}}}, {"http": {"secrets": {"K": ["a"]}}}),
        ({"http": {"timeout_s": 10}}, {"http": {"timeout_s": 5.0}}),
        ({"http": {"private": True}}, {"http": {"private": False}}),
        ({"role": {"workspace": "write"}}, {"role": {"workspace": "read"}}),
        ({"role": {"workspace": "read"}}, {"role": {}}),
        ({"role": {}, "search": {}}, {"role": {}}),
        ({"trusted": True}, {}),
    ],
)
def test_less_than_before_needs_no_yes(before: dict[str, object], after: dict[str, object]) -> None:
    """A policy that a former grant covers is not asked for again."""
    assert widening(policy(**before), policy(**after)) == ()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            {"http": {"hosts": ["a"]}},
            {"http": {"hosts": ["a", "b"]}},
            "http: hosts now also b (was a)",
        ),
        ({"http": {"hosts": ["a"]}}, {"http": {}}, "http: hosts is no longer set (was a)"),
        (
            {"http": {}},
            {"http": {"hosts": ["a"]}},
            "http: hosts is now set to a (was left to the default)",
        ),
        (
            {"http": {"timeout_s": 5}},
            {"http": {"timeout_s": 6}},
            "http: timeout_s is now 6 (was 5)",
        ),
        (
            {"http": {"private": False}},
            {"http": {"private": True}},
            "http: private is now yes (was no)",
        ),
        (
            {"http": {"secrets": {"K": ["a"]}}},
            {"http": {"secrets": {"K": ["a", "b"]}}},
            "http: secrets is now K for a, b (was K for a)",
        ),
        (
            {"http": {"secrets": {"K": ["a"]}}},
            {"http": {"secrets": {"L": ["a"]}}},
            "http: secrets is now L for a (was K for a)",
        ),
        (
            {"role": {"workspace": "read"}},
            {"role": {"workspace": "write"}},
            "role: workspace is now write (was read)",
        ),
        (
            {"role": {}},
            {"role": {"workspace": "read"}},
            "role: workspace is now set to read (was left to the default)",
        ),
    ],
)
def test_more_than_before_is_told(
    before: dict[str, object], after: dict[str, object], told: str
) -> None:
    """Each permission that the former version did not have gives one plain sentence, also in
    doubtful cases.
    """
    assert widening(policy(**before), policy(**after)) == (told,)


def test_a_limit_cannot_paint_over_the_question() -> None:
    """Control characters in a limit are shown as Python writes them, in values and in names."""
    told = widening(None, policy(http={"hosts": ["\x1b[2J\nyes"], "secrets": {"\r": []}}))
    assert told == (
        "http: may send requests to web servers; hosts: '\\x1b[2J\\nyes'; secrets: '\\r' for nothing",
    )


def test_a_scripts_network_is_told_in_words() -> None:
    """The machine's own network, private addresses and tolerated refusals have words; a list of
    hosts is narrower than the machine's.
    """

    def widening_of(before: object, after: object) -> list[str]:
        policies = [
            None if limits is None else parse_policy({"script": limits})
            for limits in (before, after)
        ]
        assert policies[1] is not None
        return list(widening(policies[0], policies[1]))

    [first] = widening_of(None, {"network": "host", "tolerate": True})
    assert "network: the machine's own, with its local services, its neighbours" in first
    assert first.endswith("tolerate: any")
    assert (
        widening_of(
            {"network": "host", "tolerate": True}, {"network": ["a.example"], "tolerate": ["date"]}
        )
        == []
    )
    [wider] = widening_of({"network": ["*"]}, {"network": "host"})
    assert wider.startswith("script: network is now the machine's own, ")
    assert widening_of({"network": ["*"]}, {"network": ["*"], "private": True}) == [
        "script: private is now set to yes (was left to the default)"
    ]
    assert widening_of({"tolerate": ["date"]}, {"tolerate": True}) == [
        "script: tolerate is now any (was date)"
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("network", "*"),
        ("network", True),
        ("tolerate", False),
        ("tolerate", "date"),
        ("private", 1),
    ],
)
def test_a_wrong_limit_of_a_script_is_refused(key: str, value: object) -> None:
    """A network that is neither ``host`` nor a list, and a tolerance that is neither true nor a
    list, have their place named.
    """
    with pytest.raises(ShapeError, match=f"policy.script.{key}"):
        parse_policy({"script": {key: value}})
