"""JSON-RPC 2.0: the examples of its specification, and texts of any kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_dispatcher.wire.jsonrpc import (
    INVALID_REQUEST,
    MAX_BATCH,
    MAX_ID,
    MAX_MESSAGE_CHARACTERS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RemoteCall,
    call_text,
    encode_message,
    error_answer,
    read_answers,
    read_calls,
    result_answer,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
IDS = st.text(min_size=1, max_size=200) | st.integers(-MAX_ID, MAX_ID)
PARAMS = st.dictionaries(st.text(), JSON, max_size=4)
CALL_KEYS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "other"])
NEARLY_CALLS = st.dictionaries(CALL_KEYS, JSON | st.just("2.0"), max_size=5)


def codes(text: str | bytes) -> list[tuple[object, int]]:
    """Return id and code of each error answer."""
    return [(error["id"], error["error"]["code"]) for error in read_calls(text).errors]


def respond(text: str) -> Any:
    """Answer a message as a server of `subtract` and `sum` would, and return the decoded answer."""
    batch = read_calls(text)
    answers = []
    for call in batch.calls:
        if call.id is None:
            continue
        match call.method, call.params:
            case "subtract", [one, two]:
                answers.append(result_answer(call.id, one - two))
            case "subtract", {"minuend": one, "subtrahend": two}:
                answers.append(result_answer(call.id, one - two))
            case "sum", [*numbers]:
                answers.append(result_answer(call.id, sum(numbers)))
            case _:
                answers.append(error_answer(call.id, METHOD_NOT_FOUND, "no such method"))
    answered = batch.answer(answers)
    return None if answered is None else json.loads(answered)


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ('{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}', 19),
        ('{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}', -19),
        (
            '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
            19,
        ),
    ],
)
def test_a_call_is_answered_with_its_id(call: str, result: int) -> None:
    """Parameters are an array or an object."""
    answer = respond(call)
    assert answer == {"jsonrpc": "2.0", "result": result, "id": json.loads(call)["id"]}


@pytest.mark.parametrize(
    ("text", "id", "code"),
    [
        ('{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', None, PARSE_ERROR),
        ('{"jsonrpc": "2.0", "method": 1, "params": "bar"}', None, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "foobar", "id": "1"}', "1", METHOD_NOT_FOUND),
        ("[]", None, INVALID_REQUEST),
        ("1", None, INVALID_REQUEST),
        ("", None, PARSE_ERROR),
        ('{"jsonrpc": "1.0", "method": "sum", "id": 1}', 1, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "sum", "params": 1, "id": 1}', 1, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "sum", "id": 1, "more": 1}', 1, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "sum", "id": null}', None, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "sum", "id": true}', None, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "sum", "id": 1.5}', None, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "sum", "id": ""}', None, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "sum", "id": {}}', None, INVALID_REQUEST),
        (
            f'{{"jsonrpc": "2.0", "method": "sum", "id": {MAX_ID + 1}}}',
            None,
            INVALID_REQUEST,
        ),
        (
            f'{{"jsonrpc": "2.0", "method": "sum", "id": "{"x" * 201}"}}',
            None,
            INVALID_REQUEST,
        ),
        ('{"jsonrpc": "2.0", "method": "sum", "id": "\\ud800"}', None, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "sum", "id": 1, "id": 2}', None, PARSE_ERROR),
        ('{"jsonrpc": "2.0", "method": "sum", "params": [NaN], "id": 1}', None, PARSE_ERROR),
        ('{"jsonrpc": "2.0", "method": "sum", "params": [1e999], "id": 1}', None, PARSE_ERROR),
        (f'{{"jsonrpc": "2.0", "id": {"1" * 5000}}}', None, PARSE_ERROR),
        ("[" * 100_000, None, PARSE_ERROR),
        ("[" * 65 + "]" * 65, None, PARSE_ERROR),
    ],
)
def test_a_message_that_is_no_call_has_one_error(text: str, id: object, code: int) -> None:
    """The error has the call's id where that can be read, else null."""
    answer = respond(text)
    assert (answer["id"], answer["error"]["code"]) == (id, code)


def test_a_notification_is_not_answered() -> None:
    """Neither a known method nor an unknown one has an answer without an id."""
    assert respond('{"jsonrpc": "2.0", "method": "sum", "params": [1, 2]}') is None
    assert respond('{"jsonrpc": "2.0", "method": "unknown"}') is None
    many = [{"jsonrpc": "2.0", "method": "sum", "params": [1]}] * 2
    assert respond(json.dumps(many)) is None


def test_a_batch_is_answered_by_one_array() -> None:
    """Each call and each element that is none has its answer, a notification has none."""
    answers = respond(
        json.dumps(
            [
                {"jsonrpc": "2.0", "method": "sum", "params": [1, 2, 4], "id": "1"},
                {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
                {"foo": "boo"},
                1,
                {"jsonrpc": "2.0", "method": "foo.get", "params": {}, "id": "5"},
            ]
        )
    )
    found = [
        (answer["id"], answer.get("result"), answer.get("error", {}).get("code"))
        for answer in answers
    ]
    assert sorted(found, key=repr) == sorted(
        [
            ("1", 7, None),
            (None, None, INVALID_REQUEST),
            (None, None, INVALID_REQUEST),
            ("5", None, METHOD_NOT_FOUND),
        ],
        key=repr,
    )


def test_limits_of_a_message_are_refused_by_name() -> None:
    """A message that is too long, too large a batch and bytes are one error each."""
    call = call_text("sum", {}, 1)
    assert codes(" " * (MAX_MESSAGE_CHARACTERS + 1)) == [(None, INVALID_REQUEST)]
    assert codes(f"[{','.join([call] * (MAX_BATCH + 1))}]") == [(None, INVALID_REQUEST)]
    assert codes(call.encode()) == [(None, INVALID_REQUEST)]
    assert len(read_calls(f"[{','.join([call] * MAX_BATCH)}]").calls) == MAX_BATCH


@given(st.text() | JSON.map(json.dumps) | NEARLY_CALLS.map(json.dumps))
def test_any_text_is_read_as_calls_or_errors(text: str) -> None:
    """Reading never raises, and what is to be answered can be sent."""
    batch = read_calls(text)
    assert batch.calls or batch.errors
    answer = batch.answer([result_answer(call.id, None) for call in batch.calls if call.id])
    if answer is not None:
        answer.encode()
        read_answers(answer)


@given(st.lists(NEARLY_CALLS, min_size=1, max_size=MAX_BATCH))
def test_a_batch_has_as_many_calls_and_errors_as_elements(items: list[dict[str, Any]]) -> None:
    """No element is lost, and none is counted twice."""
    batch = read_calls(json.dumps(items))
    assert len(batch.calls) + len(batch.errors) == len(items)
    assert batch.batched


@given(st.text(min_size=1, max_size=200), PARAMS, st.none() | IDS)
def test_a_call_comes_back_as_it_was_written(
    method: str, params: dict[str, Any], id: str | int | None
) -> None:
    """Text of a call and its reading are inverse."""
    assert read_calls(call_text(method, params, id)).calls == (
        RemoteCall(method=method, params=params, id=id),
    )


@given(IDS, JSON)
def test_an_answer_comes_back_as_it_was_written(id: str | int, result: object) -> None:
    """Text of an answer and its reading are inverse, also for text that is not valid Unicode."""
    answer = result_answer(id, result)
    assert read_answers(encode_message(answer)) == [answer]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"jsonrpc": "2.0", "id": 1}', b"{}"])
def test_a_client_refuses_what_no_server_sends(text: str | bytes) -> None:
    """A message that is neither an answer nor a notification is an error."""
    with pytest.raises(ValueError, match=r"."):
        read_answers(text)
