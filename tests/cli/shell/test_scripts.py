"""Lines of scripts and pipes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_cli.shell.scripts import MAX_LINE_BYTES, request_lines


def test_a_device_without_lines_is_refused() -> None:
    with (
        Path("/dev/zero").open("rb") as stream,
        pytest.raises(UsageError, match="line 1 is longer"),
    ):
        list(request_lines(stream))


def test_a_long_line_hides_no_later_one() -> None:
    """A long line is cut, and the next line has its own number."""
    long = b"x" * (MAX_LINE_BYTES * 3)
    found = list(request_lines(io.BytesIO(b"# note\n" + long + b"\nlist\n")))
    assert [(number, len(line)) for number, line in found] == [(2, MAX_LINE_BYTES), (3, 4)]
