"""Links to the records of changed owners."""

from __future__ import annotations

import os
from pathlib import Path

from uncaged_bundles.storage.runtime import runtime_directory
from uncaged_engine.sandbox.owner_pointers import (
    FOLDER,
    point_to,
    pointed_records,
    unlink_pointer,
)


def test_a_link_that_a_killed_run_left_half_made_misleads_no_later_one(tmp_path: Path) -> None:
    """A later run with its process id links to its own record."""
    record = tmp_path / "place.json"
    point_to(record)
    unlink_pointer(record.name)
    folder = runtime_directory(os.environ) / FOLDER
    (folder / f"{record.name}.{os.getpid()}").symlink_to(tmp_path / "other.json")
    point_to(record)
    assert list(pointed_records()) == [record]
    unlink_pointer(record.name)
    assert list(folder.iterdir()) == []
