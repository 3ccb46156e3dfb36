"""Role schemas as plain JSON Schema."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel
from uncaged_bundles.builders.schema import freeze_schema, statuses
from uncaged_bundles.errors import BundleError


class Phase(BaseModel):
    """A phase of a plan."""

    name: str = Field(min_length=1)
    title: str = "none"


class Plan(BaseModel):
    status: Literal["planned", "aborted"]
    phases: list[Phase] = []
    main: Phase | None = None


class Node(BaseModel):
    children: list[Node] = []
    phase: Phase


class Good(BaseModel):
    status: Literal["good"]
    score: int


class Bad(BaseModel):
    status: Literal["bad", "worse"]


class Verdict(RootModel[Annotated[Good | Bad, Field(discriminator="status")]]):
    pass


class Callback(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    function: type


def keys_of(value: object) -> set[str]:
    """Every key anywhere in *value*, names of properties left out."""
    found: set[str] = set()
    if isinstance(value, dict):
        for key, item in value.items():
            found.add(key)
            found |= (
                set().union(*map(keys_of, item.values()))
                if key in ("properties", "$defs")
                else keys_of(item)
            )
    elif isinstance(value, list):
        found = set().union(*map(keys_of, value))
    return found


def test_json_schema_stays_as_it_is() -> None:
    """A schema that the author wrote is not touched."""
    schema = MappingProxyType({"type": "object", "title": "Mine"})
    assert freeze_schema(schema, "schema") is schema


def test_a_model_becomes_schema_with_its_definitions_in_place() -> None:
    """No reference is left for an agent to follow, and no title that pydantic made up; a property
    named `title` stays.
    """
    frozen: Any = freeze_schema(Plan, "schema")
    assert frozen["properties"]["phases"]["items"] == {
        "description": "A phase of a plan.",
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "title": {"type": "string", "default": "none"},
        },
        "required": ["name"],
    }
    assert frozen["properties"]["main"]["anyOf"][0]["properties"]["name"]["minLength"] == 1
    assert frozen["required"] == ["status"]
    assert not keys_of(frozen) & {"$ref", "$defs", "title"}


def test_a_definition_that_contains_itself_is_kept() -> None:
    """A recursive model cannot be written out; its definition stays, with the others put into
    it.
    """
    frozen: Any = freeze_schema(Node, "schema")
    assert frozen["$ref"] == "#/$defs/Node"
    assert list(frozen["$defs"]) == ["Node"]
    assert frozen["$defs"]["Node"]["properties"]["phase"]["required"] == ["name"]


def test_a_union_by_status_keeps_its_branches() -> None:
    """A discriminated union is a plain `oneOf`, without the keyword that JSON Schema does not
    know.
    """
    frozen: Any = freeze_schema(Verdict, "schema")
    assert [branch["required"] for branch in frozen["oneOf"]] == [["status", "score"], ["status"]]
    assert "discriminator" not in keys_of(frozen)


@pytest.mark.parametrize("schema", [Phase(name="x"), int, "object", None])
def test_anything_else_is_refused_with_its_place(schema: object) -> None:
    """Only a mapping or a model class is a schema."""
    with pytest.raises(BundleError, match=r"role 'a': schema is .*; write it as JSON Schema"):
        freeze_schema(schema, "role 'a': schema")


def test_a_model_without_json_schema_is_refused() -> None:
    """A field that JSON cannot hold is named by pydantic, with the role in front."""
    with pytest.raises(
        BundleError, match=r"role 'a': schema: the model 'Callback' has no JSON Schema: .*"
    ):
        freeze_schema(Callback, "role 'a': schema")


STATUSES: list[tuple[dict[str, Any], tuple[str, ...] | None]] = [
    ({"properties": {"status": {"enum": ["b", "a"]}}}, ("b", "a")),
    ({"properties": {"status": {"const": "a"}}}, ("a",)),
    (
        {
            "oneOf": [
                {"properties": {"status": {"const": "a"}}},
                {"properties": {"status": {"enum": ["b", "a"]}}},
            ]
        },
        ("a", "b"),
    ),
    (
        {
            "anyOf": [{"$ref": "#/$defs/A"}],
            "$defs": {"A": {"properties": {"status": {"const": "a"}}}},
        },
        ("a",),
    ),
    ({"properties": {"status": {"$ref": "#/$defs/S"}}, "$defs": {"S": {"enum": ["a"]}}}, ("a",)),
    (
        {"properties": {"status": {"enum": ["a", "b"]}}, "allOf": [{"if": {}, "then": {}}]},
        ("a", "b"),
    ),
    ({"properties": {"status": {"type": "string"}}}, None),
    ({"properties": {"status": {"enum": ["a", 3]}}}, None),
    ({"properties": {}}, None),
    ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, None),
    ({}, None),
]


@pytest.mark.parametrize(("schema", "expected"), STATUSES)
def test_statuses_are_found_wherever_a_schema_lists_them(
    schema: dict[str, Any], expected: tuple[str, ...] | None
) -> None:
    """The words of `status`, in the schema's order; None when they are no closed list of words."""
    assert statuses(schema) == expected


def test_statuses_of_a_frozen_union() -> None:
    """Models by status are as good as an enum."""
    assert statuses(freeze_schema(Verdict, "schema")) == ("good", "bad", "worse")
