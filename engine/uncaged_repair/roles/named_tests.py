"""Test ids in an issue's text, as pytest and unittest write them, and the tests that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

PYTEST_ID = re.compile(r"(?<![\w./+@~-])[\w./+@~-]*\w(?:::[\w.]*\w)+(?:\[[^\]\n]*\])?")
DOTTED = re.compile(r"(?<![\w./:])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![\w/:])")
UNITTEST_ID = re.compile(r"\b(test\w*) \(([A-Za-z_][\w.]*\.\w+)\)")
FILE_ENDING = re.compile(r"\.py(?=::|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitText:
    """Text without its test ids. ids: each once, as it is written."""

    ids: tuple[str, ...]
    rest: str


def split_ids(text: str, tests: Sequence[str] = ()) -> SplitText:
    """Split *text* into test ids and the rest. tests: the known tests, which are found in any form.

    What repeats a part of an id is left out of the rest: the name of its function or class, and
    places in its file. Of a class and a test of it, only the test counts.
    """
    ids: list[str] = []
    for test in sorted((test for test in tests if "[" in test), key=len, reverse=True):
        if test in text:
            ids.append(test)
            text = text.replace(test, " ")

    def taker(name_of: Callable[[re.Match[str]], str | None]) -> Callable[[re.Match[str]], str]:
        def take(match: re.Match[str]) -> str:
            name = name_of(match)
            if name is None:
                return match[0]
            ids.append(name)
            return " "

        return take

    text = UNITTEST_ID.sub(taker(_unittest_id), text)
    text = PYTEST_ID.sub(taker(lambda match: match[0] if _is_id(match[0], tests) else None), text)
    text = DOTTED.sub(taker(lambda match: match[0] if _is_dotted(match[0], tests) else None), text)
    ids = list(dict.fromkeys(ids))
    classes = {part for name in ids for part in _parts(name)[:-1]}
    narrow = [name for name in ids if not _is_class(name) or _parts(name)[-1] not in classes]
    return SplitText(ids=tuple(narrow), rest=_without_parts(text, ids))


def matching_tests(name: str, tests: Sequence[str]) -> tuple[str, ...]:
    """Return those of *tests* that the id *name* names: one test, its parametrisations, or the
    tests of a class. The path may be longer or shorter than that of the test; one that is equal
    goes first.
    """
    found = [test for test in tests if _matches(name, test)]
    exact = [test for test in found if _parts(test)[: len(_parts(name))] == _parts(name)]
    return tuple(exact or found)


def _unittest_id(match: re.Match[str]) -> str:
    """Return the dotted id of ``test_a (module.Class)`` or ``test_a (module.Class.test_a)``."""
    function, place = match.groups()
    return place if place.endswith(f".{function}") else f"{place}.{function}"


def _is_id(name: str, tests: Sequence[str]) -> bool:
    """Return whether ``a::b`` is a test id: of a file, of a test, or of a known one."""
    path, *names = name.partition("[")[0].split("::")
    return (
        bool(PurePosixPath(path).suffix)
        or names[-1].startswith("test")
        or bool(matching_tests(name, tests))
    )


def _is_dotted(name: str, tests: Sequence[str]) -> bool:
    """Return whether ``a.b`` is a test id and no module, function or attribute."""
    *_, before, last = name.split(".")
    in_class = before[0].isupper() or before.startswith("test_") or before.endswith("_test")
    if last.startswith("test") and in_class:
        return not any(_holds(name, test) for test in tests)
    is_test = last.startswith("test") or "test" in before.lower() or last[0].isupper()
    return is_test and bool(matching_tests(name, tests))


def _holds(module: str, test: str) -> bool:
    """Return whether *test* is in *module*, a file or package."""
    parts, own = _parts(test), _parts(module)
    path = test.partition("::")[0] if "::" in test else test.rpartition(".")[0]
    inside = _parts(path)
    starts = range(len(inside) - len(own) + 1)
    return parts[-len(own) :] != own and any(
        inside[start : start + len(own)] == own for start in starts
    )


def _matches(name: str, test: str) -> bool:
    chosen = name.partition("[")[2]
    if chosen and chosen != test.partition("[")[2]:
        return False
    own, parts = _parts(name), _parts(test)
    ends = [parts]
    if _is_class(name):
        ends += [parts[:number] for number in range(2, len(parts))]
    sizes = [min(len(own), len(end)) for end in ends]
    return any(own[-size:] == end[-size:] for size, end in zip(sizes, ends, strict=True))


def _is_class(name: str) -> bool:
    return _parts(name)[-1][:1].isupper()


def _without_parts(text: str, ids: Sequence[str]) -> str:
    """Return *text* without what repeats a part of one of *ids*."""
    files, names = set[str](), set[str]()
    for name in ids:
        path, *parts = name.partition("[")[0].split("::")
        files |= {PurePosixPath(path).name} if parts else set()
        names.update(parts or name.split(".")[-2:])
    for file in files:
        text = re.sub(
            rf"""(?mx) (?<![\w./~-]) (?:[\w./~-]*/)? {re.escape(file)}
            (?: :\d+ | ",\ line\ \d+ | [ ]+[.FEsxX]+[ ]* (?:\[.*)? $)""",
            " ",
            text,
        )
    for part in names:
        text = re.sub(rf"(?<![\w./]){re.escape(part)}(?![\w/]|\.\w)", " ", text)
    return text


def _parts(name: str) -> list[str]:
    """Return the parts of a test's name without its parameters: directories, module, class,
    function.
    """
    base = FILE_ENDING.sub("", name.partition("[")[0])
    return [part for part in re.split(r"::|[/.]", base) if part]
