"""Values as text."""

from __future__ import annotations

import pytest
from uncaged_bundles.values import matches


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^[a-z]+$", "abc", True),
        ("^[a-z]+$", "abc\n", False),
        ("^[a-z]+$", "abc\nx", False),
        ("(a|b$)", "b\n", False),
        (r"^\$[0-9]+$", "$5", True),
        (r"^\$[0-9]+$", "$5\n", False),
        ("^[$]$", "$", True),
        ("^[^]$]$", "x", True),
        (r"^[\]$]+$", "]$", True),
        ("b", "abc\n", True),
    ],
)
def test_a_pattern_ends_at_the_true_end(pattern: str, text: str, found: bool) -> None:
    """The sign for the end matches only there, not before a last line feed; in a set or escaped it
    is a character.
    """
    assert matches(pattern, text) is found
