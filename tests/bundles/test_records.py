"""Records behave like the standard library's data classes, and cost a start a fraction of them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import Any, ClassVar

import pytest
from uncaged_bundles import records


@records.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place."""

    name: str
    line: int = 1
    tags: list[str] = records.field(default_factory=list)
    note: str = records.field(default="", compare=False)

    @property
    def words(self) -> str:
        return f"{self.name}:{self.line}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StandardPlace:
    """A place."""

    name: str
    line: int = 1
    tags: list[str] = dataclasses.field(default_factory=list)
    note: str = dataclasses.field(default="", compare=False)


@records.dataclass(frozen=True, slots=True, kw_only=True)
class Town(Place):
    people: int = 0


class Village(Place):
    __slots__ = ()
    KIND: ClassVar[str] = "village"


@records.dataclass(slots=True)
class Point:
    x: int
    y: int = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StandardTown(Place):
    people: int = 0


CASES: list[dict[str, Any]] = [
    {"name": "a"},
    {"name": "a", "line": 2},
    {"name": "a", "tags": ["x"]},
    {"name": "a", "note": "other"},
    {"name": "b", "line": 1, "tags": [], "note": ""},
]


@pytest.mark.parametrize("one", CASES)
@pytest.mark.parametrize("other", CASES)
def test_a_record_is_equal_to_what_a_data_class_would_be_equal_to(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    """Field by field, without those that are not compared; never to another class."""
    assert (Place(**one) == Place(**other)) == (StandardPlace(**one) == StandardPlace(**other))
    assert repr(Place(**one)) == repr(StandardPlace(**one)).replace("StandardPlace", "Place")
    others: list[object] = [StandardPlace(**one), Town(**one)]
    assert Place(**one) not in others


@pytest.mark.parametrize("arguments", [{}, {"name": "a", "colour": 1}, {"line": 1}])
def test_a_wrong_argument_is_refused_like_a_data_class_does(arguments: dict[str, Any]) -> None:
    """By the same words."""
    with pytest.raises(TypeError) as standard:
        StandardPlace(**arguments)
    with pytest.raises(TypeError) as ours:
        Place(**arguments)
    assert str(ours.value) == str(standard.value).replace("StandardPlace", "Place")
    with pytest.raises(TypeError, match="positional"):
        Place("a")  # type: ignore[call-arg]


def test_a_frozen_record_keeps_its_values() -> None:
    """Neither a field nor anything else can be set or deleted, also in a plain subclass."""
    for place in (Place(name="a"), Town(name="a"), Village(name="a")):
        with pytest.raises(AttributeError, match="cannot assign to field 'name'"):
            place.name = "b"  # type: ignore[misc]
        with pytest.raises(AttributeError, match="cannot delete field 'line'"):
            del place.line
        with pytest.raises(AttributeError):
            place.more = 1  # type: ignore[attr-defined]
        assert hash(Place(name="a", tags=("x",), note="1")) == hash(  # type: ignore[arg-type]
            Place(name="a", tags=("x",), note="2")  # type: ignore[arg-type]
        )


def test_a_record_that_is_not_frozen_can_be_changed() -> None:
    """Such a record has no hash; positional arguments and patterns follow the order of fields."""
    point = Point(1)
    point.y = 3
    match point:
        case Point(x, y):
            assert (x, y) == (1, 3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(point)


@pytest.mark.parametrize(
    "place", [Place(name="a", line=3, tags=["x"]), Town(name="a", people=2), Point(1, 5)]
)
def test_copies_are_equal(place: Any) -> None:
    """Whatever makes them: `replace` of either library, copy, pickle."""
    pickled = pickle.loads(pickle.dumps(place))  # noqa: S301 - our own bytes
    made = [
        records.replace(place),
        dataclasses.replace(place),
        copy.copy(place),
        copy.deepcopy(place),
        pickled,
    ]
    assert made == [place] * 5
    assert all(type(one) is type(place) for one in made)


def test_the_standard_library_knows_a_record() -> None:
    """`asdict`, `fields`, `replace` and a data class made of a record."""
    town = Town(name="a", people=3)
    assert dataclasses.asdict(town) == {"name": "a", "line": 1, "tags": [], "note": "", "people": 3}
    assert [one.name for one in dataclasses.fields(Town)] == [
        "name",
        "line",
        "tags",
        "note",
        "people",
    ]
    assert dataclasses.replace(town, people=4).people == 4
    assert StandardTown(name="a", people=1).words == "a:1"
    assert Village(name="v").words == "v:1"
    assert Place.__match_args__ == StandardPlace.__match_args__ == ()


def definition_s(library: str) -> float:
    """Seconds of CPU for fifty classes, as a start has them."""
    code = (
        f"from {library} import dataclass\nimport time\nbegin = time.process_time()\n"
        "for number in range(50):\n"
        "    @dataclass(frozen=True, slots=True, kw_only=True)\n"
        "    class One:\n        a: int\n        b: str = ''\n        c: float = 1.0\n        d: int = 2\n"
        "print(time.process_time() - begin)"
    )
    return min(
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(3)
    )


@pytest.mark.slow
def test_records_are_defined_in_a_quarter_of_the_time() -> None:
    """The reason for them: without it, the standard library's classes would do."""
    assert definition_s("uncaged_bundles.records") < definition_s("dataclasses") / 4


def test_two_threads_may_construct_the_first_instances_at_once() -> None:
    """The second one is in the constructor that compiles when the first one replaces it."""

    @records.dataclass(frozen=True, slots=True, kw_only=True)
    class Fresh:
        name: str

    entered: Any = vars(Fresh)["__init__"]
    assert Fresh(name="first").name == "first"
    assert vars(Fresh)["__init__"] is not entered
    second = object.__new__(Fresh)
    entered(second, name="second")
    assert second.name == "second"
