"""Opening a store in PostgreSQL: each thing that can be in the way has its own error."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from testbed.postgres import PostgresServer
from testbed.stored_threads import started
from uncaged_bundles.errors import NotFoundError, RefusedError, StorageError
from uncaged_bundles.version import __version__
from uncaged_cluster import migrations
from uncaged_cluster.address import parse_address
from uncaged_cluster.session import check_version, connect
from uncaged_cluster.store import open_store
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.stores.protocol import StoreRefused


def refusal(address: str, *, create: bool = True) -> str:
    """Return the message of a store that cannot be opened."""
    with pytest.raises((RefusedError, StorageError)) as refused:
        open_store(address, create=create, is_visible=False)
    return str(refused.value)


@pytest.fixture(scope="module")
def made(postgres: PostgresServer) -> Iterator[str]:
    """The schema of a store with one thread."""
    schema = postgres.new_schema()
    with closing(open_store(postgres.address(schema), create=True, is_visible=True)) as store:
        started(store)
    yield schema


@pytest.mark.slow
def test_a_host_that_refuses_or_never_answers_is_named(postgres: PostgresServer) -> None:
    """A closed port is refused at once; a silent one after the connection's time limit."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        # accepted by the kernel, and never answered
        address = f"postgresql://me@127.0.0.1:{port}/d?connect_timeout=2"
        assert "does not answer" in refusal(address)
    assert "server runs there" in refusal(f"postgresql://me@127.0.0.1:{port}/d")
    assert "server runs there" in refusal("postgresql://me@/d?host=/nonexistent")
    assert 'database "none"' in refusal(postgres.address("x", database="none"))
    assert 'role "none"' in refusal(postgres.address("x", user="none"))


def test_a_password_comes_from_the_environment(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it the server's demand is named; with a wrong one, its refusal."""
    address = (
        f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres?schema={postgres.new_schema()}"
    )
    assert "PGPASSFILE" in refusal(address)
    monkeypatch.setenv("PGPASSWORD", "wrong")
    assert "password authentication failed" in refusal(address)
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    with closing(open_store(address, create=True, is_visible=True)) as store:
        assert postgres.password not in store.address


def test_a_store_is_made_only_on_demand(postgres: PostgresServer) -> None:
    """A reader finds none; a schema with other tables is left alone."""
    schema = postgres.new_schema()
    with pytest.raises(NotFoundError, match=schema):
        open_store(postgres.address(schema), create=False, is_visible=True)
    with postgres.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema} CREATE TABLE threads (id int)")
    for create in (True, False):
        assert "tables of something else" in refusal(postgres.address(schema), create=create)


def test_a_user_without_rights_is_told_what_it_lacks(
    postgres: PostgresServer, made: str, tmp_path: Path
) -> None:
    """A user may lack the right to make the schema, to use it, or to write to its tables; one who
    may read opens the store. A copy ends at the first item that is refused.
    """
    user = postgres.new_schema()
    with postgres.connect() as connection:
        connection.execute(f"CREATE USER {user}")
        new = postgres.address(postgres.new_schema(), user=user)
        assert f"`GRANT CREATE ON DATABASE postgres TO {user}`" in refusal(new)
        address = postgres.address(made, user=user)
        assert "let its owner 'postgres' grant this user what it lacks" in refusal(address)
        connection.execute(f"GRANT USAGE ON SCHEMA {made} TO {user}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {made} TO {user}")
    with closing(open_store(address, create=True, is_visible=True)) as store:
        [entry] = store.threads.page(limit=10)
        assert store.threads.head(entry.bundle, entry.id).lines == 5
        for write in (
            lambda: store.blobs.put(b"x"),
            lambda: store.threads.open(entry.bundle, entry.id),
        ):
            with pytest.raises(RefusedError, match="permission denied"):
                write()
        source = DirectoryBackend.open(tmp_path, create=True)
        source.blobs.put(b"x")
        source.blobs.put(b"y")
        with pytest.raises(StoreRefused, match="permission denied for table blobs"):
            copy_store(source, store, replace=False, progress=lambda _kind, _count: None)


def test_a_read_only_database_is_read_and_not_written(
    postgres: PostgresServer, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a standby server: the store opens, and each write is refused by name."""
    monkeypatch.setenv("PGOPTIONS", "-c default_transaction_read_only=on")
    with closing(open_store(postgres.address(made), create=True, is_visible=True)) as store:
        [entry] = store.threads.page(limit=10)
        assert len(store.threads.read(entry.bundle, entry.id)) == 5
        with pytest.raises(RefusedError, match="read-only"):
            store.bundles.put(b"x")
    assert "read-only" in refusal(postgres.address(postgres.new_schema()))


def test_what_a_session_acknowledges_is_on_disk(postgres: PostgresServer) -> None:
    """Also where the server's setting would acknowledge before that."""
    setting = "SELECT current_setting('synchronous_commit')"
    with postgres.connect() as other:
        assert other.execute(setting).fetchall() == [("off",)]
    with closing(connect(parse_address(postgres.address("team"), is_visible=False))) as session:
        assert session.execute(setting).fetchall() == [("on",)]


def test_an_old_server_is_refused() -> None:
    """The message has the server's version and the oldest one that will do."""
    address = parse_address("postgresql://h/d", is_visible=True)
    check_version(address, 130_000)
    with pytest.raises(RefusedError, match=r"PostgreSQL 12.*needs 13"):
        check_version(address, 120_018)


def test_a_store_of_a_newer_engine_is_refused_by_name(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names both engines. A reader does not upgrade the tables of an older one."""
    schema = postgres.new_schema()
    address = postgres.address(schema)
    open_store(address, create=True, is_visible=True).close()
    with postgres.connect(options=f"-c search_path={schema}") as connection:
        newer = migrations.VERSION + 1
        connection.execute("INSERT INTO migrations VALUES (%s, '9.9.9')", [newer])
        for create in (True, False):
            message = refusal(address, create=create)
            assert "9.9.9" in message and __version__ in message and "upgrade" in message
        connection.execute("DELETE FROM migrations WHERE version = %s", [newer])
    monkeypatch.setattr(migrations, "VERSION", newer)
    assert f"needs {newer}" in refusal(address, create=False)


def test_several_first_writers_make_one_store(postgres: PostgresServer) -> None:
    """Each gets the store that the first one of them made."""
    address = postgres.address(postgres.new_schema())

    def put(number: int) -> str:
        with closing(open_store(address, create=True, is_visible=True)) as store:
            return store.blobs.put(bytes([number]))

    with ThreadPoolExecutor() as pool:
        names = set(pool.map(put, range(6)))
    with closing(open_store(address, create=False, is_visible=True)) as store:
        assert set(store.blobs.names()) == names


def test_two_schemas_of_a_database_are_two_stores(postgres: PostgresServer, made: str) -> None:
    """Neither sees the other's threads, and the same thread has an owner in each."""
    address = postgres.address(postgres.new_schema())
    with (
        closing(open_store(postgres.address(made), create=False, is_visible=True)) as one,
        closing(open_store(address, create=True, is_visible=True)) as other,
    ):
        assert other.threads.page(limit=10) == []
        found = started(other)
        with (
            one.threads.open(found.bundle, found.thread),
            other.threads.open(found.bundle, found.thread),
        ):
            assert one.threads.head(found.bundle, found.thread).lines == 5
