"""Links of arguments to values of the prompt and to results of earlier calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_bundles.errors import RefusedError
from uncaged_capture.linking import (
    JoinedText,
    LinkedCall,
    ParameterValue,
    RanFlow,
    Recorded,
    ResultReference,
    link,
    references_in,
)
from uncaged_capture.values import Parameter

FOUND = {"songs": [{"title": "Blue Moon", "id": 412}, {"title": "Red Sun", "id": 3}], "total": 2}
GENRE = Parameter(name="genre", value="blues", type="text")
COUNT = Parameter(name="count", value="5", type="integer")


def ran(number: int, result: object = None, text: str = "", **params: Any) -> RanFlow:
    return RanFlow(
        number=number, flow="any", params=params, result=Recorded(text=text, data=result)
    )


def second(*parameters: Parameter, result: object = None, **params: Any) -> LinkedCall:
    """Return the second of two linked calls; the first gave FOUND, or *result*."""
    data = FOUND if result is None else result
    return link([ran(1, data, "2 songs found"), ran(2, **params)], parameters)[1]


@pytest.mark.parametrize(
    ("argument", "path"),
    [
        ({"title": "Blue Moon"}, ("songs", 0, "title")),
        ({"anything": "Blue Moon"}, ("songs", 0, "title")),
        ({"x": 412}, ("songs", 0, "id")),
        ({"songId": 3}, ("songs", 1, "id")),
        ({"list": FOUND["songs"]}, ("songs",)),
        ({"all": FOUND}, ()),
    ],
    ids=["text", "other name", "number", "small number, same name", "list", "all"],
)
def test_a_value_of_an_earlier_result_is_a_reference(
    argument: Mapping[str, object], path: tuple[str | int, ...]
) -> None:
    """Whole values are found, however deep they are."""
    [value] = second(**argument).params.values()
    assert value == ResultReference(number=1, where="data", path=path)


@pytest.mark.parametrize("argument", [{"x": 3}, {"x": True}, {"x": None}, {"x": "id"}, {"x": []}])
def test_what_is_equal_by_chance_stays_as_it_is(argument: Mapping[str, object]) -> None:
    """Small numbers, short texts, truth values and nothing are no references."""
    call = second(
        result={"id": 3, "flag": True, "none": None, "short": "id", "empty": []}, **argument
    )
    assert list(references_in(dict(call.params))) == []
    assert call.params == argument


def test_a_text_is_joined_of_values_and_literals() -> None:
    """Values of the prompt and of results are found inside a longer text."""
    value = second(GENRE, note="Play Blue Moon (412) of blues").params["note"]
    assert value == JoinedText(
        pieces=(
            "Play ",
            ResultReference(number=1, where="data", path=("songs", 0, "title")),
            " (",
            ResultReference(number=1, where="data", path=("songs", 0, "id")),
            ") of ",
            ParameterValue(parameter=GENRE, as_text=True),
        )
    )


def test_a_value_is_no_part_of_a_word() -> None:
    """`blues` is not in `bluesy`, nor 412 in 4120."""
    assert second(GENRE, note="bluesy 4120").params["note"] == "bluesy 4120"


def test_values_of_the_prompt_come_before_results() -> None:
    """What the person chose stays a parameter where a result has the same value."""
    call = second(GENRE, COUNT, result={"genre": "blues", "n": 5}, genre="blues", n=5, word="5")
    assert call.params == {
        "genre": ParameterValue(parameter=GENRE, as_text=True),
        "n": ParameterValue(parameter=COUNT, as_text=False),
        "word": ParameterValue(parameter=COUNT, as_text=True),
    }


def test_the_latest_result_is_named() -> None:
    """Of two calls that gave the same value, the later one counts."""
    calls = [ran(1, {"id": 4711}), ran(2, {"id": 4711}), ran(3, id=4711)]
    assert link(calls, ())[2].params["id"] == ResultReference(number=2, where="data", path=("id",))


def test_the_text_of_a_result_is_named() -> None:
    """The message of a flow is a value, too."""
    assert second(note="2 songs found").params["note"] == ResultReference(number=1, where="text")


def test_a_part_of_a_text_stays_and_is_noted() -> None:
    """A value that no path names is fixed, which is shown to a person."""
    call = second(result="order 9931 was made", order="9931")
    assert call.params["order"] == "9931"
    assert call.fixed == ("order stays '9931', which call 1 gave inside a text",)


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_what_is_no_number_of_json_is_refused(number: float) -> None:
    """Python reads more numbers than JSON has; as code they would be names."""
    with pytest.raises(RefusedError, match="no number of JSON"):
        second(n=[number])
    assert second(result={"n": number}, n=17).params == {"n": 17}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(result=JSON, argument=JSON)
def test_a_link_has_the_value_that_was_recorded(result: object, argument: object) -> None:
    """A linked value, evaluated with the recorded results, is the argument."""
    first, then = link([ran(1, result, "the text"), ran(2, argument=argument)], (GENRE, COUNT))
    assert first.params == {}
    assert evaluated(then.params["argument"], result) == argument


def evaluated(value: object, result: object) -> object:
    match value:
        case ResultReference(where="text"):
            return "the text"
        case ResultReference(path=path):
            found: Any = result
            for key in path:
                found = found[key]
            return found
        case ParameterValue(parameter=parameter, as_text=as_text):
            return parameter.value if as_text else int(parameter.value)
        case JoinedText(pieces=pieces):
            return "".join(
                piece if isinstance(piece, str) else str(evaluated(piece, result))
                for piece in pieces
            )
        case Mapping():
            return {key: evaluated(part, result) for key, part in value.items()}
        case list():
            return [evaluated(part, result) for part in value]
        case _:
            return value
