"""Checks of the JSON Schemas in a descriptor: valid, and self-contained, so that checking an answer
never fetches anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .. import shapes
from ..contract import CLAIM

_REFERENCES = ("$ref", "$dynamicRef")


def check_schema(schema: Mapping[str, object], path: shapes.Path) -> None:
    """Check that *schema* is JSON Schema (2020-12, unless ``$schema`` names another draft).

    Raises:
        ShapeError: it is not, or it refers to another document; with the place inside it.
    """
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(dict(schema))
    except SchemaError as exc:
        raise shapes.ShapeError(
            (*path, *exc.absolute_path), f"is not valid JSON Schema: {exc.message}"
        ) from exc
    for where, target in _references(schema, path):
        if not isinstance(target, str) or not target.startswith("#"):
            raise shapes.ShapeError(
                where,
                f"refers to {shapes.shown(target)}; a schema may refer to its own parts alone ('#/$defs/…')",
            )


def claims_in(value: object, path: shapes.Path) -> Iterator[tuple[shapes.Path, object]]:
    """Yield the value of each ``x-claim`` key with its path; a property of that name is none."""
    match value:
        case dict():
            for key, item in value.items():
                if key == CLAIM and not isinstance(item, dict):
                    yield (*path, key), item
                yield from claims_in(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from claims_in(item, (*path, index))
        case _:
            pass


def without_claims(value: object) -> object:
    """Return a schema without its ``x-claim`` keys; a property of that name stays."""
    match value:
        case dict():
            return {
                key: without_claims(item)
                for key, item in value.items()
                if key != CLAIM or isinstance(item, dict)
            }
        case list():
            return [without_claims(item) for item in value]
        case _:
            return value


def _references(value: object, path: shapes.Path) -> Iterator[tuple[shapes.Path, object]]:
    match value:
        case dict():
            for key, item in value.items():
                # a property may be called "$ref"
                if key in _REFERENCES and not isinstance(item, dict):
                    yield (*path, key), item
                yield from _references(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from _references(item, (*path, index))
        case _:
            pass
