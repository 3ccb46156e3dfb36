"""Parameters of a thread: conversion before the start, and each violation that prevents it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_engine.threads.parameters import settle

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "pattern": "^[a-z]+$", "description": "a town"},
        "days": {"type": "integer", "default": 3},
        "rate": {"type": "number"},
        "loud": {"type": "boolean"},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
        "where": {"type": "string", "format": "path"},
        "file": {"type": "string", "format": "path", "pathMustExist": True},
        "tags": {"type": "array"},
        "either": {"type": ["integer", "string"]},
    },
    "required": ["place"],
    "additionalProperties": False,
}


def settled(
    tmp_path: Path, schema: Mapping[str, Any] = SCHEMA, **params: object
) -> dict[str, object]:
    return settle(
        "demo",
        schema,
        params,
        environment={"HOME": "/home/me", "ROOT": str(tmp_path)},
        directory=tmp_path,
    )


def test_defaults_and_text_become_values(tmp_path: Path) -> None:
    """Numbers and truths may be text; what takes text stays text; names come in any case."""
    found = settled(
        tmp_path, PLACE="here", days="5", rate="2.5", Loud="yes", tags='["a"]', either="7"
    )
    assert found == {
        "place": "here",
        "days": 5,
        "rate": 2.5,
        "loud": True,
        "mode": "slow",
        "tags": ["a"],
        "either": "7",
    }


def test_paths_are_absolute(tmp_path: Path) -> None:
    """Variables and `~` are expanded, `..` and links resolved, relative ones start where the caller
    is.
    """
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for text, path in (
        ("~/x", "/home/me/x"),
        ("$ROOT/link/a", f"{tmp_path}/real/a"),
        ("${ROOT}/../y", f"{tmp_path.parent}/y"),
        ("$env:ROOT/z", f"{tmp_path}/z"),
        ("real/../link", f"{tmp_path}/real"),
    ):
        assert settled(tmp_path, place="x", where=text)["where"] == path


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "parameters of demo: place: is required (a town)"),
        ({"place": "x", "days": "many"}, "days: must be integer; 'many' is not"),
        ({"place": "x", "days": 2.5}, "days: must be integer; 2.5 is not"),
        ({"place": "x", "loud": "perhaps"}, "loud: must be boolean"),
        ({"place": "x", "days": True}, "days: must be integer; True is not"),
        ({"place": 7}, "place: must be string; 7 is not"),
        ({"place": "X"}, "place: 'X' does not match the pattern '^[a-z]+$'"),
        ({"place": "abc\n"}, "place: 'abc\\n' does not match the pattern '^[a-z]+$'"),
        ({"place": "a\0b"}, "place: holds a NUL character"),
        ({"place": "x", "either": ["a", {"b\0": 1}]}, "either: holds a NUL character"),
        (
            {"place": "x", "mode": "middling"},
            "mode: 'middling' is not among the allowed values fast, slow",
        ),
        ({"place": "x", "file": "nowhere"}, "nowhere' does not exist"),
        ({"place": "x", "where": "$NOTHING/x"}, "the variable NOTHING is not set"),
        ({"place": "x", "where": " "}, "it is no path"),
        ({"place": "x", "Place": "y"}, "place: is given twice, in different case"),
        ({"place": "x", "other": 1}, "demo has no parameter 'other'; it has: days, either, file,"),
    ],
)
def test_each_rule_has_its_sentence(tmp_path: Path, params: dict[str, Any], words: str) -> None:
    """The parameter, what is wrong with it, and what it should be."""
    with pytest.raises(UsageError) as caught:
        settled(tmp_path, **params)
    assert words in str(caught.value)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """The error has one line for each violation."""
    with pytest.raises(UsageError) as caught:
        settled(tmp_path, days="x", mode="y")
    assert len(str(caught.value).splitlines()) == 3


def test_a_schema_that_says_more_is_checked_as_one(tmp_path: Path) -> None:
    """Other keywords of JSON Schema are checked after the conversions."""
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 3},
            "o": {"type": "object", "required": ["a"]},
        },
    }
    assert settled(tmp_path, schema, n="4", o={"a": 1}) == {"n": 4, "o": {"a": 1}}
    with pytest.raises(UsageError, match="n: 2 is less than the minimum of 3"):
        settled(tmp_path, schema, n="2")
    with pytest.raises(UsageError, match="o: 'a' is a required property"):
        settled(tmp_path, schema, o={})


def test_a_flow_without_parameters_takes_none(tmp_path: Path) -> None:
    """An empty schema and one without properties both refuse every parameter."""
    assert settled(tmp_path, {}) == {}
    with pytest.raises(UsageError, match="demo has no parameter 'x'; it has: none"):
        settled(tmp_path, {}, x=1)
