"""Messages of the test server, parsed. A malformed message becomes a failed test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Message = Mapping[str, object]
Line = tuple[str, int]
"""A path in the repository and a line number."""
GREEN = "passed"
RED = frozenset({"failed", "error", "timeout", "died"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Frame of a traceback that lies in the repository."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """Result of one test. outcome: passed, failed, error, skipped, xfailed, timeout, died or
    missing.

    lines: path to executed lines. held: (path, first line of the code, variable, types).
    attributes: class to attribute to types.
    """

    __test__ = False  # pytest would collect it by its name

    name: str
    outcome: str
    cpu_s: float
    error: tuple[str, str] | None
    frames: tuple[Frame, ...]
    lines: Mapping[str, frozenset[int]]
    held: tuple[tuple[str, int, str, frozenset[str]], ...]
    attributes: Mapping[str, Mapping[str, frozenset[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """Outcome of a replayed call under one edit. digest: of result, changed arguments and output.

    text: the result or the exception, shortened. normal: it returned. direct: the called function
    itself is edited.
    """

    digest: str
    text: str
    normal: bool
    direct: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedInput:
    """Arguments of a replayed call as short text, and the outcome under each edit and, last, of the
    original code; None if there is none.
    """

    arguments: str
    outcomes: tuple[CallOutcome | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCall:
    """Call of a *function* in a test, with its unchanged and its perturbed inputs."""

    function: str
    inputs: tuple[ComparedInput, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """Results of one run. end: finished, late, timeout, died, same, broken.

    compared: the calls on which edits were compared.
    """

    results: tuple[TestResult, ...]
    end: str
    cpu_s: float
    compared: tuple[ComparedCall, ...] = ()

    @property
    def outcomes(self) -> dict[str, str]:
        return {result.name: result.outcome for result in self.results}


BROKEN = RunReport(results=(), end="broken", cpu_s=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Result of a collection. errors: (path, message) of what could not be collected.

    called: (path, first line, name) of the functions that ran while the tests were collected.
    unknown_options: words of the configured pytest options that were left out, as no installed
    plugin knows them.
    """

    tests: tuple[str, ...]
    errors: tuple[tuple[str, str], ...]
    root: str
    imported: tuple[str, ...]
    called: tuple[tuple[str, int, str], ...]
    end: str
    unknown_options: tuple[str, ...] = ()


def run_of(messages: Sequence[Message]) -> RunReport:
    """Parse the messages of one run; the last has "end"."""
    last = messages[-1] if messages else {}
    return RunReport(
        results=tuple(
            _result(message) for message in messages if isinstance(message.get("test"), str)
        ),
        end=str(last.get("end", "died")),
        cpu_s=_number(last.get("cpu_s")),
        compared=tuple(_compared(message) for message in messages if "compared" in message),
    )


def collected_of(message: Message) -> Collected:
    called = [
        (str(row[0]), _whole(row[1]), str(row[2])) for row in _lists(message.get("called"), 3)
    ]
    return Collected(
        tests=tuple(str(name) for name in _list(message.get("tests"))),
        errors=tuple(_errors(message)),
        root=str(message.get("rootdir", "")),
        imported=tuple(str(path) for path in _list(message.get("imported"))),
        called=tuple(called),
        unknown_options=tuple(str(word) for word in _list(message.get("unknown_options"))),
        end=str(message.get("end", "died")),
    )


def _errors(message: Message) -> Iterator[tuple[str, str]]:
    for error in _list(message.get("errors")):
        if isinstance(error, dict):
            yield str(error.get("path", "")), str(error.get("message", ""))


def _result(message: Message) -> TestResult:
    error, lines, attributes = message.get("error"), message.get("lines"), message.get("attributes")
    return TestResult(
        name=str(message["test"]),
        outcome=str(message.get("outcome", "died")),
        cpu_s=_number(message.get("cpu_s")),
        error=(str(error[0]), str(error[1]))
        if isinstance(error, list) and len(error) == 2
        else None,
        frames=tuple(
            Frame(path=str(row[0]), line=_whole(row[1]), function=str(row[2]))
            for row in _lists(message.get("frames"), 3)
        ),
        lines={path: frozenset(seen) for path, seen in lines.items()}
        if isinstance(lines, dict)
        else {},
        held=tuple(
            (str(row[0]), _whole(row[1]), str(row[2]), frozenset(map(str, _list(row[3]))))
            for row in _lists(message.get("locals"), 4)
        ),
        attributes=_attributes(attributes) if isinstance(attributes, dict) else {},
    )


def _compared(message: Message) -> ComparedCall:
    inputs = [
        ComparedInput(arguments=str(row[0]), outcomes=tuple(map(_outcome, _list(row[1]))))
        for row in _lists(message.get("inputs"), 2)
    ]
    return ComparedCall(function=str(message["compared"]), inputs=tuple(inputs))


def _outcome(value: object) -> CallOutcome | None:
    match value:
        case [str(digest), str(text), bool(normal), bool(direct)]:
            return CallOutcome(digest=digest, text=text, normal=normal, direct=direct)
        case _:
            return None


def _attributes(found: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, frozenset[str]]]:
    return {
        name: {key: frozenset(types) for key, types in held.items()} for name, held in found.items()
    }


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _lists(value: object, length: int) -> list[list[object]]:
    return [row for row in _list(value) if isinstance(row, list) and len(row) == length]
