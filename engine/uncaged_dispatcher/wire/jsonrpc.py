"""Messages of JSON-RPC 2.0: what a server reads and answers, and what a client does. Does no I/O.

Rule 1: an id is a text or a whole number, and an answer has the id of its call or none.
Rule 2: a call without an id is a notification, and is not answered, not even with an error.
Rule 3: whatever the text is, the result is calls and error answers; reading never raises.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from uncaged_engine.services.canonical import depth

MAX_MESSAGE_CHARACTERS = 1 << 20
MAX_BATCH = 50
MAX_DEPTH = 64
MAX_ID_CHARACTERS = 200
MAX_ID = (1 << 53) - 1
"""The largest whole number that every client reads exactly."""
MAX_METHOD_CHARACTERS = 200
VERSION = "2.0"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REFUSED: Final = -32000
"""The method's own error: what the command line would print."""

CallId = str | int
Response = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCall:
    """One call of a method. id: None for a notification. params: {} if there are none."""

    method: str
    params: Mapping[str, Any] | Sequence[Any]
    id: CallId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBatch:
    """One message: its calls, and the error answers to what is no call.

    batched: the answers are one array, as the calls were.
    """

    calls: tuple[RemoteCall, ...]
    errors: tuple[Response, ...]
    batched: bool

    def answer(self, answers: Sequence[Response]) -> str | None:
        """Return the text that answers the message, given the answers to its calls; None if
        nothing is to be sent.
        """
        every = [*self.errors, *answers]
        if not every:
            return None
        return encode_message(every if self.batched else every[0])


def read_calls(text: str | bytes) -> CallBatch:
    """Return the calls of a message."""
    if isinstance(text, bytes):
        return _only(error_answer(None, INVALID_REQUEST, "messages are text, not bytes"))
    if len(text) > MAX_MESSAGE_CHARACTERS:
        return _only(
            error_answer(
                None,
                INVALID_REQUEST,
                f"a message has at most {MAX_MESSAGE_CHARACTERS} characters, not {len(text)}",
            )
        )
    try:
        value = _decode(text)
    except ValueError as exc:
        return _only(error_answer(None, PARSE_ERROR, f"the message is not JSON: {exc}"))
    if not isinstance(value, list):
        read = _read_call(value)
        if isinstance(read, RemoteCall):
            return CallBatch(calls=(read,), errors=(), batched=False)
        return _only(read)
    if not 0 < len(value) <= MAX_BATCH:
        return _only(
            error_answer(
                None, INVALID_REQUEST, f"a batch has 1 to {MAX_BATCH} calls, not {len(value)}"
            )
        )
    every = [_read_call(item) for item in value]
    return CallBatch(
        calls=tuple(item for item in every if isinstance(item, RemoteCall)),
        errors=tuple(item for item in every if not isinstance(item, RemoteCall)),
        batched=True,
    )


def result_answer(id: CallId, result: object) -> Response:
    """Return the answer to a call that succeeded."""
    return {"jsonrpc": VERSION, "id": id, "result": result}


def error_answer(
    id: CallId | None, code: int, message: str, data: Mapping[str, object] | None = None
) -> Response:
    """Return the answer to a call that failed; None as the id if it could not be read."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = dict(data)
    return {"jsonrpc": VERSION, "id": id, "error": error}


def call_text(method: str, params: Mapping[str, object], id: CallId | None = None) -> str:
    """Return the text of a call; of a notification without an id."""
    call: dict[str, object] = {"jsonrpc": VERSION, "method": method, "params": dict(params)}
    if id is not None:
        call["id"] = id
    return encode_message(call)


def encode_message(value: object) -> str:
    """Return a message as text. Characters outside of ASCII are escaped, so that a text from a
    flow's result cannot be too broken to send.
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def read_answers(text: str | bytes) -> list[RemoteCall | Response]:
    """Return the notifications and answers of a server's message.

    Raises:
        ValueError: it is none.
    """
    if isinstance(text, bytes):
        raise ValueError("messages are text, not bytes")
    value = _decode(text)
    found: list[RemoteCall | Response] = []
    for item in value if isinstance(value, list) else [value]:
        match item:
            case {"jsonrpc": "2.0", "id": _, "result": _} | {
                "jsonrpc": "2.0",
                "id": _,
                "error": {"code": int(), "message": str()},
            }:
                found.append(item)
            case {"jsonrpc": "2.0", "method": str(method), "params": dict(params)}:
                found.append(RemoteCall(method=method, params=params))
            case _:
                raise ValueError(f"neither an answer nor a notification: {str(item)[:200]}")
    return found


def _only(error: Response) -> CallBatch:
    return CallBatch(calls=(), errors=(error,), batched=False)


def _read_call(item: object) -> RemoteCall | Response:
    """Return an element of a message as a call, or the error answer to it."""
    if not isinstance(item, dict):
        return error_answer(None, INVALID_REQUEST, "a call is an object")
    id = item.get("id")
    if "id" in item and not _is_id(id):
        return error_answer(
            None,
            INVALID_REQUEST,
            f"an id is a text of 1 to {MAX_ID_CHARACTERS} characters or a whole number up to {MAX_ID}",
        )
    problem = _problem(item)
    if problem:
        return error_answer(id, INVALID_REQUEST, problem)
    return RemoteCall(method=item["method"], params=item.get("params", {}), id=id)


def _problem(item: Mapping[str, Any]) -> str:
    """Return what is wrong with a call whose id is valid; "" if nothing is."""
    if item.get("jsonrpc") != VERSION:
        return 'a call has "jsonrpc": "2.0"'
    if not isinstance(item.get("method"), str):
        return "a call has a method"
    if len(item["method"]) > MAX_METHOD_CHARACTERS:
        return f"a method has at most {MAX_METHOD_CHARACTERS} characters"
    if not isinstance(item.get("params", {}), dict | list):
        return "params are an object or an array"
    if unknown := sorted(item.keys() - {"jsonrpc", "id", "method", "params"}):
        return f"a call has no field {unknown[0][:80]!r}"
    return ""


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= MAX_ID_CHARACTERS and not _has_surrogate(value)
    return type(value) is int and -MAX_ID <= value <= MAX_ID


def _decode(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not JSON, has a key twice, or is nested too deep.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_number
        )
    except RecursionError as exc:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from exc
    if depth(value) > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return value


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _number(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return number


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
