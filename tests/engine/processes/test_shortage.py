"""Distinction between programs that failed because of the disk and other failed programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_engine.processes.shortage import full_disk, named_in


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "error: cannot write\nerror: /x/y: No space left on device\n",
            "error: /x/y: No space left on device",
        ),
        (
            "OSError: [Errno 5] Input/output error: 'a'",
            "OSError: [Errno 5] Input/output error: 'a'",
        ),
        ("assert 1 == 2", None),
        ("", None),
    ],
)
def test_the_systems_words_are_found_in_what_a_program_printed(
    text: str, found: str | None
) -> None:
    """The line with them is what a person is shown."""
    assert named_in("nothing here", text) == found


def test_a_disk_with_room_is_not_full(tmp_path: Path) -> None:
    """Nor is a place that is gone."""
    assert full_disk([tmp_path, tmp_path / "gone"]) is None
