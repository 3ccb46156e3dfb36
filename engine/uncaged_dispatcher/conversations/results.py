"""Result of a request: what its thread returned, checked and within limits.

A flow's result is data from outside: a field of another shape is left out and named in `problems`;
it never fails the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from uncaged_bundles.errors import UncagedError, UsageError, without_thread
from uncaged_bundles.records import dataclass
from uncaged_engine.services.canonical import depth, encode

from ..calls import Call

T = TypeVar("T")
MAX_MESSAGE_CHARACTERS = 8_000
MAX_DISPLAY_CHARACTERS = 64_000
MAX_DATA_BYTES = 64 << 10
"""Data whose JSON is longer stays in the thread's journal."""
MAX_LISTED = 50
MAX_NAME_CHARACTERS = 500
MAX_VALUE_BYTES = 4 << 10
MAX_DEPTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultChoice:
    """One thing that a person may choose after a request, and the call that it makes."""

    id: str
    label: str
    call: Call

    def document(self) -> dict[str, object]:
        """Return the choice as JSON."""
        return {"id": self.id, "label": self.label, "call": self.call.document()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What the person is busy with: its packs are tried first, and alone if it is exclusive."""

    name: str
    packs: tuple[str, ...] = ()
    exclusive: bool = False

    def document(self) -> dict[str, object]:
        """Return the activity as JSON."""
        return {"name": self.name, "packs": list(self.packs), "exclusive": self.exclusive}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEntity:
    """A thing that a result named. value: what a later call uses for it."""

    name: str
    type: str = ""
    value: object = None

    def document(self) -> dict[str, object]:
        """Return the entity as JSON."""
        return {"name": self.name, "type": self.type, "value": self.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResult:
    """How a request ended.

    status: the state of its thread; or ``cancelled``, ``missed`` (no tier read the sentence),
    ``verb`` (the client runs the verb in details),
    ``refused`` (an error before a thread started), ``server_stopping``.
    exit_code: that of the command line. data: None if there is none or it is too large.
    changes_activity: whether the flow set the activity, or ended it with null.
    follow_ups: the calls that the flow asks for next.
    """

    status: str
    success: bool
    message: str = ""
    exit_code: int = 0
    thread: str | None = None
    data: object = None
    display: str | None = None
    choices: tuple[ResultChoice, ...] = ()
    activity: Activity | None = None
    changes_activity: bool = False
    entities: tuple[NamedEntity, ...] = ()
    follow_ups: tuple[Call, ...] = ()
    problems: tuple[str, ...] = ()
    details: Mapping[str, object] | None = None

    def document(self) -> dict[str, object]:
        """Return the result as JSON; what is absent is left out."""
        fields: dict[str, object] = {
            "status": self.status,
            "success": self.success,
            "message": self.message,
            "exitCode": self.exit_code,
            "threadId": self.thread,
            "data": self.data,
            "display": self.display,
            "choices": [choice.document() for choice in self.choices],
            "entities": [entity.document() for entity in self.entities],
            "next": [call.document() for call in self.follow_ups],
            "problems": list(self.problems),
            "details": self.details,
        }
        always = {"status", "success", "message", "exitCode"}
        found = {
            name: value
            for name, value in fields.items()
            if name in always or (value is not None and value != [])
        }
        if self.changes_activity:
            found["activity"] = None if self.activity is None else self.activity.document()
        return found

    @classmethod
    def failed(cls, problem: UncagedError, *, thread: str | None = None) -> RequestResult:
        """Return the result of a request that an error ended before, or instead of, a thread."""
        return cls(
            status="refused",
            success=False,
            message=_readable(without_thread(problem)),
            exit_code=problem.exit_code,
            thread=thread,
        )


def result_of_thread(
    thread: str, status: str, message: str, exit_code: int, returned: object
) -> RequestResult:
    """Return the result of a request whose thread stopped.

    Args:
        returned: what the bundle returned; None for a thread that did not complete.
    """
    fields: Mapping[Any, Any] = returned if isinstance(returned, Mapping) else {"data": returned}
    problems: list[str] = []

    def field(name: str, read: Callable[[Any], T], default: T) -> T:
        if fields.get(name) is None:
            return default
        try:
            return read(fields[name])
        except UsageError as problem:
            problems.append(f"{name}: {problem}"[:MAX_NAME_CHARACTERS])
            return default

    data = fields.get("data")
    if data is not None and (depth(data) > MAX_DEPTH or _size(data) > MAX_DATA_BYTES):
        data = None
        problems.append(f"data: it is large; it is in thread {thread} alone")
    return RequestResult(
        status=status,
        success=status == "completed" and fields.get("success", True) is not False,
        message=_readable(message or str(fields.get("message") or "")),
        exit_code=exit_code,
        thread=thread,
        data=data,
        display=field("display", _display, None),
        choices=field("choices", lambda value: _list(value, _choice), ()),
        activity=field("activity", _activity, None),
        changes_activity="activity" in fields and (fields["activity"] is None or not problems),
        entities=field("entities", lambda value: _list(value, _entity), ()),
        follow_ups=field("next", lambda value: _list(value, Call.read), ()),
        problems=tuple(problems),
    )


def _list(value: object, read: Callable[[object], T]) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise UsageError(f"a list is needed, not {type(value).__name__}")
    if len(value) > MAX_LISTED:
        raise UsageError(f"{len(value)} entries; {MAX_LISTED} are the most")
    return tuple(read(item) for item in value)


def _display(value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"it is text or Markdown, not {type(value).__name__}")
    if len(value) > MAX_DISPLAY_CHARACTERS:
        raise UsageError(f"{len(value)} characters; {MAX_DISPLAY_CHARACTERS} are the most")
    return value


def _choice(value: object) -> ResultChoice:
    match value:
        case {"id": str(id), "label": str(label), "call": call}:
            return ResultChoice(id=_short(id), label=_short(label), call=Call.read(call))
        case _:
            pass
    raise UsageError('a choice is {"id", "label", "call"}')


def _activity(value: object) -> Activity:
    match value:
        case {"name": str(name), **rest} if not rest.keys() - {"packs", "exclusive"}:
            packs, exclusive = rest.get("packs", []), rest.get("exclusive", False)
            if isinstance(packs, list) and isinstance(exclusive, bool):
                return Activity(
                    name=_short(name),
                    packs=_list(packs, _name),
                    exclusive=exclusive,
                )
        case _:
            pass
    raise UsageError('an activity is {"name", "packs", "exclusive"} or null')


def _entity(value: object) -> NamedEntity:
    match value:
        case {"name": str(name), **rest} if not rest.keys() - {"type", "value"}:
            kind, content = rest.get("type", ""), rest.get("value")
            if depth(content) > MAX_DEPTH or _size(content) > MAX_VALUE_BYTES:
                raise UsageError(
                    f"the value of {name[:80]!r} is larger than {MAX_VALUE_BYTES} bytes"
                )
            return NamedEntity(name=_short(name), type=_name(kind), value=content)
        case _:
            pass
    raise UsageError('an entity is {"name", "type", "value"}')


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"a name is text, not {type(value).__name__}")
    return _short(value)


def _short(text: str) -> str:
    if len(text) > MAX_NAME_CHARACTERS:
        raise UsageError(f"{len(text)} characters; {MAX_NAME_CHARACTERS} are the most")
    return text


def _readable(text: str) -> str:
    """Return a message as text that can be written: a path may have bytes that are no UTF-8."""
    return text[:MAX_MESSAGE_CHARACTERS].encode("utf-8", "replace").decode()


def _size(value: object) -> int:
    return len(encode(value).encode("utf-8", "replace"))


def read_result(record: Mapping[str, Any]) -> RequestResult:
    """Return the result that `RequestResult.document` wrote."""
    return RequestResult(
        status=str(record["status"]),
        success=record["success"] is True,
        message=str(record.get("message", "")),
        exit_code=int(record["exitCode"]),
        thread=record.get("threadId"),
        data=record.get("data"),
        display=record.get("display"),
        choices=_list(record.get("choices", []), _choice),
        activity=_activity(record["activity"]) if record.get("activity") is not None else None,
        changes_activity="activity" in record,
        entities=_list(record.get("entities", []), _entity),
        follow_ups=_list(record.get("next", []), Call.read),
        problems=tuple(record.get("problems", ())),
        details=record.get("details"),
    )
