"""Links between the calls of an agent: where an argument is a value of the prompt, or of the result
of an earlier call.

A linked value is JSON data in which a `ResultReference` or a `ParameterValue` represents a value,
and a `JoinedText` a text that contains some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Literal

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.records import dataclass

from .selecting import occurs
from .values import Parameter, spans

__all__ = [
    "JoinedText",
    "Linked",
    "LinkedCall",
    "ParameterValue",
    "RanFlow",
    "Recorded",
    "ResultReference",
    "chosen_in",
    "link",
    "link_text",
    "references_in",
]

_MOST_VALUES = 20_000
"""Values of one result that are compared with arguments."""
_LEAST_TEXT = 3
_LEAST_NUMBER = 10
"""Shorter texts and smaller numbers are equal by chance, unless their names agree."""
_WORDS = frozenset({"true", "false", "yes", "no", "none", "null", "all", "any", "ok", "done"})

Where = Literal["data", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Result of a call, in full."""

    text: str
    data: object


@dataclass(frozen=True, slots=True, kw_only=True)
class RanFlow:
    """A call of a flow, or of a model.

    number: of the call in the trace. kind: the effect. flow: its name; of a model what its answer
    is called. params: of a model the other settings. result: None if only its head is known; head,
    characters, digest: as the trace has them, of the text that the agent got. was: the hash of the
    version that ran, "" if that is not known.
    """

    number: int
    kind: Literal["flow", "llm"] = "flow"
    flow: str
    prompt: str = ""
    params: Mapping[str, object]
    result: Recorded | None = None
    head: str = ""
    characters: int = -1
    digest: str = ""
    was: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultReference:
    """A value in the result of a call. number: of the call. path: keys and indexes in its data;
    empty for all of it.
    """

    number: int
    where: Where
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterValue:
    """The value of a parameter. as_text: in a place where its text is needed."""

    parameter: Parameter
    as_text: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedText:
    """A text made of literal and other pieces."""

    pieces: tuple[str | ResultReference | ParameterValue, ...]


Linked = object
"""JSON data in which `ResultReference`, `ParameterValue` and `JoinedText` may occur."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedCall:
    """A call with its arguments linked. fixed: sentences about arguments that stay as they were,
    although text of an earlier result contains them.
    """

    ran: RanFlow
    prompt: Linked
    params: Mapping[str, Linked]
    fixed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    reference: ResultReference
    value: object
    name: str


def link(calls: Sequence[RanFlow], parameters: Sequence[Parameter]) -> tuple[LinkedCall, ...]:
    """Return the calls with their arguments linked to the parameters and to earlier results.

    Raises:
        RefusedError: an argument is no JSON value.
    """
    known: list[_Known] = []
    linked = []
    for call in calls:
        linker = _Linker(known, parameters)
        prompt = linker.value(call.prompt, "prompt")
        params = {name: linker.value(value, name) for name, value in call.params.items()}
        linked.append(LinkedCall(ran=call, prompt=prompt, params=params, fixed=tuple(linker.fixed)))
        # the latest result first: an agent uses what it just got
        known[:0] = _values_of(call)
    return tuple(linked)


def link_text(text: str, calls: Sequence[RanFlow], parameters: Sequence[Parameter]) -> Linked:
    """Return a text after all calls, linked to the parameters and to their results."""
    known = [value for call in reversed(calls) for value in _values_of(call)]
    return _Linker(known, parameters).value(text, "")


def references_in(value: Linked) -> Iterator[ResultReference]:
    """Yield the references in a linked value."""
    return (one for one in _marks_in(value) if isinstance(one, ResultReference))


def chosen_in(value: Linked) -> Iterator[ParameterValue]:
    """Yield the values of parameters in a linked value."""
    return (one for one in _marks_in(value) if isinstance(one, ParameterValue))


def _marks_in(value: Linked) -> Iterator[ResultReference | ParameterValue]:
    match value:
        case ResultReference() | ParameterValue():
            yield value
        case JoinedText(pieces=pieces):
            yield from (piece for piece in pieces if not isinstance(piece, str))
        case Mapping():
            for inner in value.values():
                yield from _marks_in(inner)
        case list():
            for inner in value:
                yield from _marks_in(inner)
        case _:
            pass


def _values_of(call: RanFlow) -> list[_Known]:
    """Return the values in a call's result, the outer ones first."""
    if call.result is None:
        return []
    found = [_Known(ResultReference(number=call.number, where="data"), call.result.data, "")]
    at = 0
    while at < len(found) < _MOST_VALUES:
        reference, value, name = found[at].reference, found[at].value, found[at].name
        inner: Iterator[tuple[str | int, object]] = iter(())
        if isinstance(value, Mapping):
            inner = iter(value.items())
        elif isinstance(value, list):
            inner = iter(enumerate(value))
        for key, part in inner:
            place = ResultReference(number=call.number, where="data", path=(*reference.path, key))
            found.append(_Known(place, part, key if isinstance(key, str) else name))
        at += 1
    text = ResultReference(number=call.number, where="text")
    return [*found, _Known(text, call.result.text, "")]


class _Linker:
    """Links the arguments of one call."""

    def __init__(self, known: Sequence[_Known], parameters: Sequence[Parameter]) -> None:
        self.fixed: list[str] = []
        self._known = known
        self._parameters = parameters

    def value(self, value: object, name: str) -> Linked:
        if isinstance(value, str):
            return self._text(value, name)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            if not isfinite(value):
                raise RefusedError(
                    f"the argument {name!r} is {value!r}, which is no number of JSON"
                )
            for parameter in self._parameters:
                if parameter.type in ("integer", "number") and parameter.value == str(value):
                    return ParameterValue(parameter=parameter, as_text=False)
        found = self._equal(value, name)
        if found is not None:
            return found
        if isinstance(value, Mapping):
            return {key: self.value(part, str(key)) for key, part in value.items()}
        if isinstance(value, list):
            return [self.value(part, name) for part in value]
        return value

    def _text(self, text: str, name: str) -> Linked:
        for parameter in self._parameters:
            if parameter.value == text:
                return ParameterValue(parameter=parameter, as_text=True)
        found = self._equal(text, name)
        if found is not None:
            return found
        pieces = self._pieces(text)
        if pieces == (text,):
            self._note(text, name)
            return text
        return JoinedText(pieces=pieces)

    def _equal(self, value: object, name: str) -> ResultReference | None:
        """Return the place of an equal value: one with the argument's name before others."""
        equal = [
            one for one in self._known if type(one.value) is type(value) and one.value == value
        ]
        named = [one for one in equal if _agree(one.name, name)]
        distinct = equal if _is_distinct(value) else []
        best = next(iter((*named, *distinct)), None)
        return None if best is None else best.reference

    def _pieces(self, text: str) -> tuple[str | ResultReference | ParameterValue, ...]:
        """Return a text as its literal parts and the values in it; where two overlap, the longer
        one counts.
        """
        replaced: list[tuple[int, int, ResultReference | ParameterValue]] = [
            (span.start, span.end, ParameterValue(parameter=span.parameter, as_text=True))
            for span in spans(text, self._parameters)
        ]
        inner = [
            (str(one.value), one.reference)
            for one in self._known
            if isinstance(one.value, str | int | float)
            and _is_distinct(one.value)
            and _is_telling(str(one.value))
            and str(one.value) in text
            and occurs(str(one.value), text)
        ]
        for shown, reference in sorted(inner, key=lambda pair: -len(pair[0])):
            start = text.find(shown)
            while start >= 0:
                end = start + len(shown)
                if not any(start < other[1] and other[0] < end for other in replaced):
                    replaced.append((start, end, reference))
                start = text.find(shown, end)
        pieces: list[str | ResultReference | ParameterValue] = []
        at = 0
        for start, end, value in sorted(replaced, key=lambda one: one[0]):
            if start > at:
                pieces.append(text[at:start])
            pieces.append(value)
            at = end
        if at < len(text) or not pieces:
            pieces.append(text[at:])
        return tuple(pieces)

    def _note(self, text: str, name: str) -> None:
        """Note a text that an earlier result contains, where it cannot be named."""
        if not _is_distinct(text):
            return
        for one in self._known:
            if (
                isinstance(one.value, str)
                and len(one.value) > len(text)
                and occurs(text, one.value)
            ):
                self.fixed.append(
                    f"{name} stays {text!r}, which call {one.reference.number} gave inside a text"
                )
                return


def _agree(one: str, other: str) -> bool:
    """Tell whether two names mean the same: ``id`` and ``songId`` do."""
    first, second = (name.replace("_", "").replace("-", "").lower() for name in (one, other))
    return bool(first and second) and (first.endswith(second) or second.endswith(first))


def _is_distinct(value: object) -> bool:
    """Tell whether two equal values are so for a reason."""
    if isinstance(value, str):
        return len(value.strip()) >= _LEAST_TEXT and value.strip().lower() not in _WORDS
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return abs(value) >= _LEAST_NUMBER or value % 1 != 0
    if isinstance(value, Mapping | list):
        return len(value) > 1 or any(_is_distinct(part) for part in _parts(value))
    return False


def _is_telling(text: str) -> bool:
    """Tell whether a text is no mere word, which a longer text has by chance."""
    return not text.isalpha() or not text.islower()


def _parts(value: Mapping[str, object] | list[object]) -> Iterator[object]:
    return iter(value.values() if isinstance(value, Mapping) else value)
