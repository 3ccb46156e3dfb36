"""Selection of the calls that a flow needs.

A call is kept if text of its result occurs in a later kept call or in the final answer, or if it
may have changed something. Each other one is listed with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from uncaged_bundles.records import dataclass

from .calls import Command, FileEdit, FileLook, FileWrite, FlowCall, Other, TraceCall, WebRead
from .commands import only_looks

__all__ = ["Dropped", "Selection", "Use", "select", "values_in"]

_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{},;|=]+")
_TELLING = re.compile(r"[\d/@._-]")
_FIELD_ENDS = re.compile(r"[\n\t,;:|=]")
_LEAST_FIELD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A call that is no part of the flow. reason: in words."""

    call: TraceCall
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A text of a result that occurs later. number: of the call that gave it. where: the number of
    the later call; None for the final answer.
    """

    number: int
    text: str
    where: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Calls of a trace, in order, and where the results of the kept ones are used."""

    kept: tuple[TraceCall, ...]
    dropped: tuple[Dropped, ...]
    uses: tuple[Use, ...]

    def is_in_answer(self, call: TraceCall) -> bool:
        """Tell whether text of the call's result is in the final answer."""
        return any(use.number == call.number and use.where is None for use in self.uses)


def select(calls: Sequence[TraceCall], *, answer: str, prompt: str) -> Selection:
    """Return which calls are kept.

    Args:
        answer: the final answer of the agent. prompt: its text proves no use of a part of a result,
            as the agent knew it before.
    """
    kept: list[TraceCall] = []
    dropped: list[Dropped] = []
    uses: list[Use] = []
    for at in reversed(range(len(calls))):
        call = calls[at]
        found = list(_uses(call, kept, answer, prompt))
        reason = _reason(call, calls[:at], found, kept)
        if reason:
            dropped.append(Dropped(call=call, reason=reason))
        else:
            kept.append(call)
            uses += found
    return Selection(
        kept=tuple(reversed(kept)), dropped=tuple(reversed(dropped)), uses=tuple(reversed(uses))
    )


def _reason(
    call: TraceCall, earlier: Sequence[TraceCall], uses: Sequence[Use], later: Sequence[TraceCall]
) -> str:
    """Return why a call is not needed; "" if it is.

    Args:
        later: the kept calls after it, the last one first.
    """
    if call.failure:
        return f"it failed: {call.failure}"
    match call.action:
        case Other(why=why):
            return why
        case FileWrite(path=path):
            again = _written_again(reversed(later), path)
            return f"call {again.number} wrote the same file anew" if again is not None else ""
        case Command(text=text) if not only_looks(text):
            return ""
        case FileEdit() | FlowCall():
            return ""
        case Command() | FileLook() | WebRead():
            same = _same_before(earlier, call)
            if same is not None:
                return f"it repeats call {same.number}"
            if not uses:
                return "nothing used its result"
    return ""


def _written_again(later: Iterable[TraceCall], path: str) -> TraceCall | None:
    """Return the call that replaces the whole file before anything could use it."""
    for call in later:
        match call.action:
            case FileWrite(path=other) if other == path:
                return call
            case FileLook() | Other() | FileWrite():
                continue
            case _:
                return None
    return None


def _same_before(earlier: Sequence[TraceCall], look: TraceCall) -> TraceCall | None:
    """Return the last earlier call that looked for the same, if nothing changed since."""
    for call in reversed(earlier):
        if call.action == look.action and not call.failure:
            return call if call.digest == look.digest else None
        if not call.failure and _may_change(call):
            return None
    return None


def _may_change(call: TraceCall) -> bool:
    match call.action:
        case Command(text=text):
            return not only_looks(text)
        case FileLook() | WebRead():
            return False
        case _:
            return True


def _uses(call: TraceCall, later: Sequence[TraceCall], answer: str, prompt: str) -> Iterator[Use]:
    """Yield the texts of a call's result that later calls or the answer have."""
    known = "\n".join((prompt, *call.texts()))
    texts = [text for text in values_in(call.output) if not occurs(text, known)]
    whole = call.output.strip()
    answers = texts if not (call.is_whole and whole) or whole in texts else [whole, *texts]
    for text in answers:
        if occurs(text, answer):
            yield Use(number=call.number, text=text, where=None)
    for other in later:
        has = _finder(other)
        for text in texts:
            if has(text):
                yield Use(number=call.number, text=text, where=other.number)


def _finder(call: TraceCall) -> Callable[[str], bool]:
    joined = "\n".join(call.texts())
    return lambda text: occurs(text, joined)


def values_in(output: str) -> list[str]:
    """Return the texts of an output that can be recognized elsewhere, the longest first: lines,
    fields, and words with a digit or a character of paths and addresses.
    """
    found: dict[str, None] = {}
    for line in output.splitlines():
        parts = (line, *_FIELD_ENDS.split(line))
        for part in parts:
            text = part.strip(" \t\r\"'`{}[]()")
            if len(text) >= _LEAST_FIELD and any(map(str.isalnum, text)):
                found[text] = None
        for token in _TOKEN.findall(line):
            text = token.strip(".:!?")
            if text and _TELLING.search(text) and any(map(str.isalnum, text)):
                found[text] = None
    return sorted(found, key=lambda text: (-len(text), text))


def occurs(text: str, among: str) -> bool:
    """Tell whether a text occurs in another one as whole words."""
    if text not in among:
        return False
    before = r"(?<![\w])" if text[0].isalnum() or text[0] == "_" else ""
    after = r"(?![\w]|[.]\d)" if text[-1].isalnum() or text[-1] == "_" else ""
    return re.search(before + re.escape(text) + after, among) is not None
