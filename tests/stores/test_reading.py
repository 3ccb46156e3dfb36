"""Problems of one item, and of a whole store."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import DamagedError, EnvironmentLacks, StorageError
from uncaged_engine.stores.reading import noted_problem


def test_only_a_problem_of_the_whole_store_ends_a_run() -> None:
    """A damaged item is a sentence; a lost connection is not one sentence for each item."""
    problems: list[str] = []
    with noted_problem("blobs", problems):
        raise DamagedError("blob x is missing")
    assert problems == ["blobs: blob x is missing"]
    for whole in (StorageError("gone"), EnvironmentLacks("no library")):
        with pytest.raises(type(whole)), noted_problem("blobs", problems):
            raise whole
    assert len(problems) == 1
