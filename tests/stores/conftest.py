"""Stores of all implementations, as the conformance suite uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.stores.protocol import StoreBackend

Connect = Callable[[], StoreBackend]
"""Opens the test's store once more, as another process would."""


@pytest.fixture(params=["directory"])
def connect(tmp_path: Path) -> Iterator[Connect]:
    """Yield a function that opens one empty store of each kind."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(
            closing(DirectoryBackend.open(tmp_path / "store", create=True))
        )


@pytest.fixture
def backend(connect: Connect) -> StoreBackend:
    return connect()
