"""Sentence patterns: the syntax that is accepted, and the messages for the rest."""

from __future__ import annotations

import pytest
from uncaged_bundles.builders.recipes.grammar_check import check_pattern
from uncaged_bundles.shapes import ShapeError

PARAMETERS = ("path", "limit")


@pytest.mark.parametrize(
    "pattern",
    [
        "list files",
        "create (a)? $(path:wildcard) playlist (with)? $(limit:number) (songs)?",
        "(show | list) (the (big | large))? files",
        "$(path)",
        "dir $(PATH:wildcard) ($(limit:number))?",
        "what's up (in $(path:word))? now",
        "tail $(path:wildcard) $(limit:number)?",
        "go (very)* (far)+ away",
        "(really)+",
        r"really\? \(5 \$\)",
    ],
)
def test_good_patterns_pass(pattern: str) -> None:
    """Words, choices, options in any depth, parameters in any case."""
    check_pattern(pattern, PARAMETERS, ("p",))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "matches nothing"),
        ("(a)? (b)?", "matches nothing"),
        ("$(limit:number)?", "matches nothing"),
        ("(a)* (b)?", "matches nothing"),
        ("a \\", "column 3: '\\\\' has no meaning here"),
        ("list (files", "1 '(' without a ')'"),
        ("list files)", "column 11: this ')' closes nothing"),
        ("(a | ) b", "there is nothing before this ')'"),
        ("( | a) b", "there is nothing before this '|'"),
        ("() b", "there is nothing before this ')'"),
        ("a? b", "column 2: '?' has no meaning here"),
        ("$(path:thing)", "'thing' is no kind of parameter"),
        ("x $(where:wildcard)", "column 3: there is no parameter 'where'; there are: limit, path"),
        ("$(a b)", "is no parameter"),
        ("a $ b", "'$' has no meaning"),
        ("(" * 20 + "a" + ")" * 20, "at most 16 deep"),
        ("a" * 1001, "at most 1000"),
    ],
)
def test_bad_patterns_are_told_with_their_column(pattern: str, words: str) -> None:
    """Each mistake has its own words."""
    with pytest.raises(ShapeError) as caught:
        check_pattern(pattern, PARAMETERS, ("p",))
    assert words in str(caught.value)
