"""Placeholders of calls: what each form becomes, and what each mode does with a path to nothing."""

from __future__ import annotations

import pytest
from uncaged_bundles.carried.placeholders import BadReference, resolve

RESULTS = ["a.txt", {"files": ["b.txt", {"name": "c", "size": 7}], "none": None, "ok": True}]
ENTITIES = [{"name": "Book", "type": "file", "value": {"cells": [{"to": "B2"}]}}]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${result-0}", "a.txt"),
        ("keep ${result-0}!", "keep a.txt!"),
        ("${result-1.files[0]}", "b.txt"),
        ("${result-1.files[1].size}", "7"),
        ("${result-1.none}", ""),
        ("${result-1.ok}", "true"),
        ("${result-1.files}", '["b.txt", {"name": "c", "size": 7}]'),
        ("${entity-0}", "Book"),
        ("${entity-0}[Revenue]", "Book[Revenue]"),
        ("${entity-0.value.cells[0].to}", "B2"),
        ("${other-0} and $${HOME}", "${other-0} and $${HOME}"),
    ],
)
def test_a_placeholder_becomes_text(text: str, filled: str) -> None:
    """A value is filled in as text: null as nothing, numbers, booleans and objects as JSON."""
    assert resolve(text, RESULTS, ENTITIES) == filled
    assert resolve({"a": [text, 1]}, RESULTS, ENTITIES) == {"a": [filled, 1]}


def test_filled_in_text_is_not_read_again() -> None:
    """A result that looks like a placeholder stays as it is."""
    assert resolve("${result-0}", ["${result-1}", "secret"], []) == "${result-1}"


def test_a_parameter_of_data_gets_the_data_itself() -> None:
    """A text that is one placeholder becomes the list, for the parameters that are named."""
    files = resolve({"a": "${result-1.files}", "b": "x"}, RESULTS, [], as_data=["a", "b"])
    assert files == {"a": ["b.txt", {"name": "c", "size": 7}], "b": "x"}


@pytest.mark.parametrize("mode", ["throw", "fallback-to-name", "passthrough", "off"])
@pytest.mark.parametrize("kind", ["result", "entity"])
def test_a_missing_thing_is_an_error_in_every_mode(mode: str, kind: str) -> None:
    """A placeholder for a thing that is not there is never left in a call."""
    message = rf'{kind.capitalize()} reference not found: \${{{kind}-9}} in "see \${{{kind}-9}}"'
    with pytest.raises(BadReference, match=message):
        resolve(f"see ${{{kind}-9}}", RESULTS, ENTITIES, mode)


@pytest.mark.parametrize(
    ("mode", "filled"),
    [
        ("fallback-to-name", "Book"),
        ("passthrough", "${entity-0.price}"),
        ("off", "${entity-0.price}"),
    ],
)
def test_a_path_to_nothing_follows_the_mode(mode: str, filled: str) -> None:
    """A path that leads nowhere becomes the name or stays, as the mode says."""
    assert resolve("${entity-0.price}", [], ENTITIES, mode) == filled


def test_a_path_to_nothing_is_an_error_by_default() -> None:
    """A path that leads nowhere names itself and its text in the error."""
    with pytest.raises(
        BadReference, match=r"Entity path did not resolve: \$\{entity-0\.value\[3\]\}"
    ):
        resolve("${entity-0.value[3]}", [], ENTITIES)


def test_the_mode_off_resolves_no_path_at_all() -> None:
    """A path that would lead somewhere stays in the mode "off", and a bare reference is filled."""
    assert resolve("${entity-0.type} ${entity-0}", [], ENTITIES, "off") == "${entity-0.type} Book"
