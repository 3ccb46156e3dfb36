"""Groups with captures in the patterns of flows."""

from __future__ import annotations

import pytest
from uncaged_dispatcher.grammar.grammars import load
from uncaged_dispatcher.packs.patterns import MAX_EXPANDED, expanded, pattern_rules


@pytest.mark.parametrize(
    ("pattern", "ways"),
    [
        ("ls ($(path:wildcard))?", ["ls $(path:wildcard)", "ls"]),
        ("a (in $(x) | of (the)? $(x))? b", ["a in $(x) b", "a of (the)? $(x) b", "a b"]),
        ("a ((in | at) $(x) (here)? | there)", ["a (in | at) $(x) (here)?", "a there"]),
        ("(a | b)? $(x)?", ["(a | b)? $(x)?"]),
        (r"a \( (in $(x))", [r"a \( in $(x)"]),
        ("a (in $(x))*", ["a (in $(x))*"]),
    ],
)
def test_a_group_with_a_capture_becomes_alternatives(pattern: str, ways: list[str]) -> None:
    """Groups without captures, repetitions and escaped brackets stay as they are."""
    assert [" ".join(way.split()) for way in expanded(pattern)] == ways


def test_too_many_alternatives_are_not_expanded() -> None:
    """The pattern stays one alternative, which the loader then refuses with its place."""
    pattern = " ".join(f"(a{number} $(x{number}))?" for number in range(10))
    assert MAX_EXPANDED < 2**10
    assert expanded(pattern) == [pattern]


def test_a_parameter_in_an_optional_group_is_read_or_absent() -> None:
    """The call of a pattern has the parameter exactly if the sentence has the group."""
    [rule] = pattern_rules(
        "largest-files",
        {
            "patterns": ["largest files (in (the)? $(path:wildcard) (folder)?)?"],
            "parameters": {"properties": {"path": {"type": "string"}}},
        },
    )
    grammar = load(rule.text)
    found = [grammar.best(text) for text in ("largest files", "largest files in the photos folder")]
    assert [reading and reading.value for reading in found] == [
        {"flow": "largest-files", "params": {}},
        {"flow": "largest-files", "params": {"path": "photos"}},
    ]
