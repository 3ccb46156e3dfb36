"""A store in PostgreSQL for each test, and its tables; a store of two flows for a module, with a
worker.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from testbed.foreground import environment
from testbed.kitchens import CAKES, TIME, Kitchen, Machine, opened
from testbed.postgres import PostgresServer
from uncaged_bundles.version import __version__
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


@pytest.fixture(scope="module")
def kitchen(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kitchen]:
    """The store has no shipped flows: they would be indexed for each of the machines."""
    schema, directory = postgres.new_schema(), tmp_path_factory.mktemp("kitchen")
    address = postgres.address(schema)
    with closing(open_store(address, create=True, is_visible=True)):
        pass
    with opened(address, directory / "first") as engine:
        engine.registry.seed(f"{__version__} none", list, now_ms=0)
        for name, bundle in (("cakes", CAKES), ("clock", TIME)):
            engine.add(name, bundle, accept=lambda _: True)
    with postgres.connect(options=f"-c search_path={schema}") as rows:
        yield Kitchen(address=address, directory=directory, rows=rows)


@pytest.fixture(scope="module")
def worker(kitchen: Kitchen) -> Iterator[None]:
    words = [sys.executable, "-m", "uncaged_cli", "work", "--store", kitchen.address]
    home = kitchen.directory / "worker"
    home.mkdir()
    variables = {**environment(), "UNCAGED_WORKFLOW_HOME": str(home)}
    with subprocess.Popen(words, env=variables, cwd=home) as process:
        try:
            yield
        finally:
            process.kill()


@pytest.fixture
def machine(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Machine:
    return Machine(kitchen, monkeypatch, capsys)
