"""Annotated classes as the shape of JSON mappings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import pytest
from uncaged_bundles import shapes
from uncaged_bundles.fields import read, shape_of
from uncaged_bundles.limits import FetchLimits, HttpLimits, ScriptLimits
from uncaged_bundles.shapes import ShapeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A class with a field of each kind."""

    unit: ClassVar[str] = "kg"
    to: Annotated[str, shapes.filled]
    speed: Literal["slow", "fast"] = "slow"
    weight: Annotated[float | None, shapes.positive] = None
    pieces: Annotated[int, shapes.whole_between(1, 10)] = 1
    note: str | None = None
    labels: list[str] | None = None
    sizes: Mapping[str, int] | None = None
    is_open: Annotated[bool, "isOpen"] = False
    content: object = None
    height: float = 0


def test_a_mapping_becomes_an_instance() -> None:
    """Absent keys keep their defaults; a key in camel case fills the field that its annotation
    names.
    """
    parcel = read(
        Parcel,
        {
            "to": "x",
            "isOpen": True,
            "sizes": {"a": 1},
            "labels": ["l"],
            "note": None,
            "content": [1],
            "height": 2,
        },
        (),
    )
    assert parcel == Parcel(
        to="x", is_open=True, sizes={"a": 1}, labels=["l"], content=[1], height=2
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "parcel: must be a mapping, not []"),
        ({}, "parcel.to: is missing"),
        ({"to": " "}, "parcel.to: is empty"),
        ({"to": 1}, "parcel.to: must be text, not 1"),
        (
            {"to": "x", "wieght": 1},
            "parcel.wieght: unknown key 'wieght'; known here: content, height",
        ),
        ({"to": "x", "wieght": 1}, "; did you mean 'weight'?"),
        ({"to": "x", "is_open": True}, "did you mean 'isOpen'?"),
        ({"to": "x", "unit": "g"}, "parcel.unit: unknown key 'unit'"),
        ({"to": "x", "speed": "medium"}, "parcel.speed: 'medium' is not one of slow, fast"),
        ({"to": "x", "speed": ["slow"]}, "parcel.speed: ['slow'] is not one of slow, fast"),
        ({"to": "x", "weight": 0}, "parcel.weight: must be a positive number, not 0"),
        ({"to": "x", "weight": None}, "parcel.weight: must be a positive number, not None"),
        ({"to": "x", "weight": True}, "parcel.weight: must be a positive number, not True"),
        ({"to": "x", "pieces": 11}, "parcel.pieces: must be a whole number from 1 to 10, not 11"),
        ({"to": "x", "pieces": 1.0}, "parcel.pieces: must be a whole number, not 1.0"),
        ({"to": "x", "labels": ["a", 2]}, "parcel.labels[1]: must be text, not 2"),
        ({"to": "x", "labels": "a"}, "parcel.labels: must be a list, not 'a'"),
        ({"to": "x", "sizes": {"a": "1"}}, "parcel.sizes.a: must be a whole number, not '1'"),
        ({"to": "x", "isOpen": 1}, "parcel.isOpen: must be True or False, not 1"),
        ({"to": "x", "height": float("nan")}, "parcel.height: must be a number, not nan"),
    ],
)
def test_a_wrong_mapping_is_answered_with_the_key(value: object, message: str) -> None:
    """The message has the path of the key, what is wrong, and for a misspelt key the nearest
    one.
    """
    with pytest.raises(ShapeError) as caught:
        read(Parcel, value, ("parcel",))
    assert message in str(caught.value)


def test_limits_have_the_types_of_their_annotations() -> None:
    """A handler reads the limits of a checked policy by field; what the policy leaves out has its
    default.
    """
    limits = ScriptLimits.of({"executables": ["git"], "maxBytes": 10, "network": "host"})
    assert (limits.executables, limits.max_bytes, limits.network, limits.tolerate) == (
        ["git"],
        10,
        "host",
        (),
    )
    assert ScriptLimits.of({}).max_bytes is None


def test_limits_are_inherited() -> None:
    """A request has the limits of a page and those of its own."""
    assert set(shape_of(HttpLimits).checks) - set(shape_of(FetchLimits).checks) == {"secrets"}
