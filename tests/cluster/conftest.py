"""A store in PostgreSQL for each test, and its tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from testbed.postgres import PostgresServer
from uncaged_cluster.store import open_store
from uncaged_engine.services.stores import (
    StoreBackend,
)

Rows = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    """A store that no other test uses."""
    return postgres.address(postgres.new_schema())


@pytest.fixture
def store(address: str) -> Iterator[StoreBackend]:
    with closing(open_store(address, create=True, is_visible=True)) as found:
        yield found


@pytest.fixture
def rows(postgres: PostgresServer, address: str, store: StoreBackend) -> Iterator[Rows]:
    """A person's connection to the tables of the store."""
    assert store
    schema = address.partition("schema=")[2]
    with postgres.connect(options=f"-c search_path={schema}") as found:
        yield found
