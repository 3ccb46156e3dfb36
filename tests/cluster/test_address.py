"""Addresses of stores in PostgreSQL."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_cluster.address import parse_address

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "schema", "conninfo"),
    [
        ("postgresql://a@h/d", "uncaged", "postgresql://a@h/d"),
        ("postgres://h:5433/d?schema=team_1", "team_1", "postgresql://h:5433/d"),
        ("postgresql:///d?host=/run/pg&schema=x", "x", "postgresql:///d?host=/run/pg"),
        ("postgresql://h1:1,h2:2/d", "uncaged", "postgresql://h1:1,h2:2/d"),
        ("postgresql:///d?user=a%40b", "uncaged", "postgresql:///d?user=a%40b"),
        (
            "postgresql://a@[::1]:5/d?sslmode=require",
            "uncaged",
            "postgresql://a@[::1]:5/d?sslmode=require",
        ),
    ],
)
def test_a_url_of_libpq_has_a_schema_as_well(text: str, schema: str, conninfo: str) -> None:
    """The schema is taken out of what libpq gets, and is always shown."""
    found = parse_address(text, is_visible=True)
    assert (found.schema, found.conninfo) == (schema, conninfo)
    assert f"schema={schema}" in str(found)
    assert parse_address(str(found), is_visible=True) == found


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://a:{SECRET}@h/d",
        f"postgresql://a@h/d?password={SECRET}",
        f"postgresql://a@h/d?sslpassword={SECRET}&schema=x",
        f"postgresql://a:{SECRET}%40@h/d",
    ],
)
def test_a_password_is_refused_where_others_can_read_it_and_never_shown(text: str) -> None:
    """An address of the command line has none; that of a private place has one for libpq alone."""
    with pytest.raises(UsageError, match="PGPASSFILE") as refused:
        parse_address(text, is_visible=True)
    assert SECRET not in str(refused.value)
    found = parse_address(text, is_visible=False)
    assert SECRET in found.conninfo
    assert SECRET not in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "mysql://h/d",
        "postgresql://[::1/d",
        "postgresql://h:port/d",
        "postgresql://h/d?nonsense=1",
        "postgresql://h/d?nonsense",
        "postgresql://h/d#part",
        "postgresql://h/d%00",
        f"postgresql://a:{SECRET}@h:port/d",
        f"postgresql://a:{SECRET}%00@h/d",
        f"postgresql://a:{SECRET}@[::1/d",
        f"postgresql://a:x@{SECRET}@h/d",
        f"postgresql://a:{SECRET}/x@h/d",
        f"postgresql://a:x?{SECRET}@h/d",
        f"postgresql://a:1?{SECRET}=x@h/d",
        f"postgresql://a:1/{SECRET}@h/d",
        f"postgresql://a:{SECRET}\u2100@h/d",
        f"postgresql://a@h/d?password=x&{SECRET}",
    ],
)
def test_an_unreadable_url_is_explained_without_its_password(text: str) -> None:
    """The message shows the form of an address."""
    with pytest.raises(UsageError, match="postgresql://USER@HOST") as refused:
        parse_address(text, is_visible=False)
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None or SECRET not in str(refused.value.__cause__)


@pytest.mark.parametrize(
    "schema", ["", "public", "pg_catalog", "information_schema", "A", "a b", "a;b", "1a", "a" * 64]
)
def test_a_store_has_a_schema_of_its_own(schema: str) -> None:
    """Schemas of the server and the one that all share are refused."""
    with pytest.raises(UsageError, match="schema of its own"):
        parse_address(f"postgresql://h/d?schema={schema}", is_visible=True)
    with pytest.raises(UsageError, match="schema of its own"):
        parse_address("postgresql://h/d?schema=a&schema=b", is_visible=True)
