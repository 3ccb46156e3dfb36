"""Sizes as text."""

from __future__ import annotations

import pytest
from uncaged_cli.display.sizes import spell_bytes


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (-1, "0 bytes"),
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1.0 KB"),
        (42_300, "42 KB"),
        (3_100_000, "3.1 MB"),
        (9e15, "9000 TB"),
    ],
)
def test_a_size_has_at_most_one_decimal(size_bytes: int, words: str) -> None:
    """Decimal units, as disks are sold."""
    assert spell_bytes(size_bytes) == words
