"""Stores of all implementations, as the conformance suite uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest
from testbed.postgres import PostgresServer
from uncaged_engine.stores.opening import open_store
from uncaged_engine.stores.protocol import StoreBackend

Connect = Callable[[], StoreBackend]
"""Opens the test's store once more, as another process would."""


@pytest.fixture(params=["directory", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address of each kind, where no store is yet."""
    if request.param == "directory":
        return str(tmp_path / "store")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.address(server.new_schema())


@pytest.fixture
def connect(address: str) -> Iterator[Connect]:
    """Yield a function that opens one empty store of each kind."""
    connected = partial(open_store, address, create=True, is_visible=True)
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(connected()))


@pytest.fixture
def backend(connect: Connect) -> StoreBackend:
    return connect()
