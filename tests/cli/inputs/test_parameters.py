"""Parameters from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_cli.inputs.parameters import gather, parse_value, read_file, read_json

SCHEMA = {
    "type": "object",
    "properties": {
        "version": {"type": "string"},
        "count": {"type": "integer"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array"},
        "either": {"type": ["string", "null"]},
        "free": {},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("version", "1.10", "1.10"),
        ("count", "3", 3),
        ("deep", "true", True),
        ("tags", '["a"]', ["a"]),
        ("either", "null", "null"),
        ("free", "7", 7),
        ("free", "seven", "seven"),
    ],
)
def test_a_value_gets_the_type_that_the_schema_asks_for(
    name: str, text: str, value: object
) -> None:
    """Declared text stays text, whatever it looks like."""
    assert parse_value(name, text, SCHEMA) == value


def test_a_value_of_the_wrong_type_is_named() -> None:
    """The message has the parameter, the type and the text."""
    with pytest.raises(UsageError, match=r"'count' must be integer; 'many' is not"):
        parse_value("count", "many", SCHEMA)


def test_an_undeclared_parameter_suggests_the_closest() -> None:
    """Where the schema is closed, a slip of the pen is caught here."""
    with pytest.raises(UsageError, match="did you mean 'count'"):
        parse_value("cuont", "3", SCHEMA)


def test_without_a_schema_json_is_taken_where_it_parses() -> None:
    """A flow that declares nothing still gets numbers."""
    assert gather(None, ["a=1", "b=x=y", "c="], {}) == {"a": 1, "b": "x=y", "c": ""}


@pytest.mark.parametrize("pair", ["word", "=x", ""])
def test_a_pair_needs_a_name(pair: str) -> None:
    """The message shows the form."""
    with pytest.raises(UsageError, match="NAME=VALUE"):
        gather(None, [pair], {})


def test_a_pair_wins_over_the_file(tmp_path: Path) -> None:
    """JSON or YAML by the file's name; the command line is the last word."""
    (tmp_path / "p.yaml").write_text("count: 1\ndeep: true\n")
    (tmp_path / "p.json").write_text('{"count": 1}')
    assert gather(tmp_path / "p.yaml", ["count=2"], SCHEMA) == {"count": 2, "deep": True}
    assert gather(tmp_path / "p.json", [], SCHEMA) == {"count": 1}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "{"),
        ("a.yaml", "a: ["),
        ("a.yaml", "- 1"),
        ("a.yaml", "1: x"),
        ("a.yaml", "!!python/none"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, name: str, text: str) -> None:
    """Whatever is wrong with it, the message names the file."""
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=name):
        read_file(tmp_path / name)


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    """A missing file has the exit code of things that are not found."""
    with pytest.raises(NotFoundError, match=r"none\.json"):
        read_file(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("name", "data"),
    [("deep.yaml", "[" * 20_000), ("deep.json", "[" * 200_000), ("deep.json", '{"a":' * 200_000)],
)
def test_a_file_of_parameters_that_is_nested_too_deeply_is_refused(
    tmp_path: Path, name: str, data: str
) -> None:
    """A parameter file from elsewhere ends in a message with its name, not in a bug report."""
    (tmp_path / name).write_text(data)
    with pytest.raises(UsageError, match=name):
        gather(tmp_path / name, (), {})
    with pytest.raises(UsageError, match=name):
        read_json(tmp_path / name)


def test_a_parameter_that_is_nested_too_deeply_is_refused() -> None:
    """A parameter that is nested too deeply on the command line is a usage error."""
    with pytest.raises(UsageError, match="must be array"):
        parse_value("list", "[" * 200_000, {"properties": {"list": {"type": "array"}}})
