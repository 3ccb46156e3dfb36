"""Directives at the beginning of a sentence."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_dispatcher.readings.directives import split_directive


@pytest.mark.parametrize(
    ("text", "directive", "sentence"),
    [
        ("learn: pay the rent", "learn", "pay the rent"),
        ("  LEARN : pay the rent", "learn", "pay the rent"),
        ("Remember  how to pay the rent", "learn", "pay the rent"),
        ("record pay the rent", "learn", "pay the rent"),
        ("record: pay the rent", "learn", "pay the rent"),
        ("\trecord:pay", "learn", "pay"),
        (" Dev: pay the rent ", "dev", "pay the rent"),
        ("dev\uff1apay", "dev", "pay"),
        ("records of the rent", None, "records of the rent"),
        ("record", None, "record"),
        ("remember to pay", None, "remember to pay"),
        ("develop: x", None, "develop: x"),
        ("learn about rent", None, "learn about rent"),
        ("please learn: x", None, "please learn: x"),
    ],
)
def test_a_directive_is_read_in_any_case(text: str, directive: str | None, sentence: str) -> None:
    """A directive is a whole word at the beginning, after space, with or without the colon."""
    found = split_directive(text)
    assert (found.directive, found.sentence) == (directive, sentence)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("learn: pay", "the agent of 'reason' gets it"),
        ("record: open https://a.example", "the agent of 'web-goal' gets it"),
        ("learn: ", "followed by what is to be done"),
        ("dev: ", "followed by a sentence"),
    ],
)
def test_a_directive_that_cannot_be_followed_is_refused(text: str, problem: str) -> None:
    """No pattern reads what an agent gets, nor an empty sentence."""
    with pytest.raises(UsageError, match=problem):
        split_directive(text).readable()
