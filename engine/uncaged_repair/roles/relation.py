"""Relation of an issue's text to the failing tests: the tests, functions, files and exceptions that
it names, and the rare words that both share. It only computes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from .common_words import COMMON_EXCEPTIONS, FUNCTION_WORDS, GENERIC_WORDS, REPAIR_WORDS
from .named_tests import matching_tests, split_ids
from .stems import CAMEL, same_stem, stem, words_of

TOKEN = re.compile(r"[A-Za-z_][\w.]*(?:/[\w.-]+)*(?:\.py)?")
CODE = re.compile(r"`([^`\n]+)`|([A-Za-z_][\w.]*)\(")
ITEM = re.compile(r"(?m)^\s*(?:[-*+]|\d+[.)])\s+")

IN_NAME = 0.8
IN_FILE = 0.6
IN_TEXT = 0.35
GENERIC = 0.3
LATER_LINE = 0.6
COMMON_SHARE = 0.5
"""Share of the passing tests above which a function that they run is no evidence by its name."""
FEW_TESTS = 6
ENOUGH = 0.5
SHORT_TEXT = 12
"""Number of words up to which a text needs no more than `ENOUGH`; each doubling adds as much."""
PER_PART = 0.25
"""What each doubling of the number of list items adds to what is enough."""
SMOOTHING = 4
LONG_MESSAGE = 12
CLOSE = 0.5
"""Share of the best score from which another group counts without words of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """Facts of a group of failing tests. source: text of the test functions. errors: (type,
    message).

    files, functions: what the tests run, with the share of the passing tests that run it, too.
    """

    tests: tuple[str, ...]
    source: str = ""
    errors: tuple[tuple[str, str], ...] = ()
    files: Mapping[str, float]
    functions: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFacts:
    """Facts of the whole suite. passing: number of tests that pass. having: in how many of them a
    word is, by stem. name: words of the repository's name.
    """

    passing: int = 0
    having: Mapping[str, int] = field(default_factory=dict)
    name: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Relation of the text to one group. kind: general, test, function, file, message, words,
    confirmed, command or none. words: those that matched, as they are written. tests: those of the
    group that the text names by their ids; empty for all of them.
    """

    kind: str
    words: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    score: float = 0.0

    @property
    def text(self) -> str:
        """Return the relation as a predicate of "the issue's text"."""
        words = ", ".join(self.words)
        match self.kind:
            case "general":
                return "asks for the tests to pass"
            case "test" | "function" | "file":
                return f"names the {self.kind} {words}"
            case "message":
                return f"quotes the failure: {words}"
            case "words":
                return f"shares the words {words}"
            case "confirmed":
                return "matches none of these tests; a person asked to repair them"
            case "command":
                return "was not compared: the test command is one test"
            case _:
                return "does not match"


def relate(text: str, groups: Sequence[GroupFacts], suite: SuiteFacts) -> list[Relation]:
    """Return the relation of *text* to each group. A test id names that test alone; the rest of the
    text may have another subject.
    """
    split = split_ids(text, [test for group in groups for test in group.tests])
    general = is_general(split.rest, suite.name)
    if not split.ids:
        return (
            [Relation(kind="general") for _ in groups]
            if general
            else _relate_items(text, groups, suite)
        )
    nothing = [Relation(kind="none") for _ in groups]
    by_rest = nothing if general else _relate_items(split.rest, groups, suite)
    by_ids = _relate_ids(split.ids, split.rest, groups)
    return [first or second for first, second in zip(by_ids, by_rest, strict=True)]


def _relate_ids(
    ids: Sequence[str], rest: str, groups: Sequence[GroupFacts]
) -> list[Relation | None]:
    """Return the relation of each group of which a test is named by its id; of such a group, names
    in the rest of the text count, too.
    """
    tests = [test for group in groups for test in group.tests]
    found = {name: frozenset(matching_tests(name, tests)) for name in ids}
    tokens = tokens_of(rest)
    relations: list[Relation | None] = []
    for group in groups:
        words = [name for name in ids if not found[name].isdisjoint(group.tests)]
        wanted = frozenset[str]().union(*(found[name] for name in words))
        chosen = [test for test in group.tests if test in wanted or names_of(test) & tokens]
        relation = Relation(kind="test", words=tuple(words), tests=tuple(chosen))
        relations.append(relation if words else None)
    return relations


def _relate_items(text: str, groups: Sequence[GroupFacts], suite: SuiteFacts) -> list[Relation]:
    """Return the relation of *text* to each group. The items of a list are compared one by one, as
    each may have a subject of its own.
    """
    parts = [part for part in ITEM.split(text) if subject_words(part, suite.name)] or [text]
    factor = 1 + PER_PART * math.log2(len(parts))
    tables = [_relate_part(part, groups, suite, ENOUGH * factor) for part in parts]
    return [
        next((relation for relation in found if relation.kind != "none"), found[0])
        for found in zip(*tables, strict=True)
    ]


def _relate_part(
    text: str, groups: Sequence[GroupFacts], suite: SuiteFacts, enough: float
) -> list[Relation]:
    """Return the relation of one part to each group. A group that shares words counts beside a
    better one if it shares words that the better ones do not explain.
    """
    found = [named(text, group, suite) for group in groups]
    explained = {
        word
        for group, relation in zip(groups, found, strict=True)
        if relation is not None
        for word in word_weights(group)
    }
    by_words = [shared(text, group, suite, enough) for group in groups]
    order = sorted(
        (number for number, relation in enumerate(found) if relation is None),
        key=lambda number: -by_words[number].score,
    )
    close = by_words[order[0]].score * CLOSE if order and not explained else math.inf
    for number in order:
        own = shared(text, groups[number], suite, enough, without=explained)
        if own.kind != "none" or 0 < close <= by_words[number].score:
            found[number] = by_words[number]
            explained |= word_weights(groups[number]).keys()
    return [relation or Relation(kind="none") for relation in found]


def is_general(text: str, name: Collection[str] = ()) -> bool:
    """Return whether *text* names no subject: it is empty, or asks for the tests to pass. name:
    words of the repository's name, which are no subject. The id of a test is a subject.
    """
    if split_ids(text).ids:
        return False
    known = FUNCTION_WORDS | REPAIR_WORDS
    return not code_names(text) and all(
        word in known or stem(word) in name for word in words_of(text)
    )


def named(text: str, group: GroupFacts, suite: SuiteFacts) -> Relation | None:
    """Return the relation by a name of the group that *text* spells out; None if there is none."""
    tokens = tokens_of(text)
    tests = [test for test in group.tests if test in text]
    tests += [part for test in group.tests for part in names_of(test) if part in tokens]
    if tests:
        return Relation(kind="test", words=tuple(dict.fromkeys(tests)))
    few = suite.passing < FEW_TESTS
    names = code_names(text)
    functions = [
        name
        for name, share in group.functions.items()
        if name in names and (few or share <= COMMON_SHARE)
    ]
    if functions:
        return Relation(kind="function", words=tuple(functions))
    files = [
        path
        for path, share in group.files.items()
        if tokens & file_names(path) and (few or share <= COMMON_SHARE)
    ]
    if files:
        return Relation(kind="file", words=tuple(files))
    flat = " ".join(text.split())
    messages = [
        " ".join(message.split())
        for _, message in group.errors
        if len(message.strip()) >= LONG_MESSAGE and " ".join(message.split()) in flat
    ]
    return Relation(kind="message", words=tuple(messages[:1])) if messages else None


def shared(
    text: str,
    group: GroupFacts,
    suite: SuiteFacts,
    enough: float = ENOUGH,
    without: Collection[str] = (),
) -> Relation:
    """Return the relation by words that *text* and the group share. A word counts by where the
    group has it, and the less the more of the other tests have it; stems in *without* do not count.
    """
    wanted = subject_words(text, suite.name)
    weights = word_weights(group)
    score, words = 0.0, []
    for key, (word, weight) in wanted.items():
        if any(same_stem(key, other) for other in without):
            continue
        value = max((weights[other] for other in weights if same_stem(key, other)), default=0.0)
        if value == 0:
            continue
        having = max(
            (suite.having[other] for other in suite.having if same_stem(key, other)), default=0
        )
        value *= weight * (1 - having / (suite.passing + SMOOTHING))
        words.append((value, word))
        score += value
    for kind in {kind.rpartition(".")[2] for kind, _ in group.errors} - {"AssertionError"}:
        if kind and re.search(rf"\b{re.escape(kind)}\b", text):
            words.append((IN_NAME, kind))
            score += IN_TEXT if kind in COMMON_EXCEPTIONS else IN_NAME
    enough *= 1 + math.log2(max(1.0, len(wanted) / SHORT_TEXT))
    if score < enough:
        return Relation(kind="none", score=0.0)
    best = [word for _, word in sorted(words, key=lambda item: -item[0])[:6]]
    return Relation(kind="words", words=tuple(best), score=score)


def word_weights(group: GroupFacts) -> dict[str, float]:
    """Return the words of a group by stem, with the weight of the place that has them."""
    found: dict[str, float] = {}
    places: list[tuple[str, float]] = [(group.source, IN_TEXT)]
    places += [(message, IN_TEXT) for _, message in group.errors]
    places += [
        (PurePosixPath(path).stem, IN_FILE * (1 - share)) for path, share in group.files.items()
    ]
    places += [(test, IN_NAME) for test in group.tests]
    places += [(name, IN_NAME * (1 - share)) for name, share in group.functions.items()]
    for text, weight in places:
        for word in words_of(text):
            found[stem(word)] = max(weight, found.get(stem(word), 0.0))
    return found


def subject_words(text: str, name: Collection[str]) -> dict[str, tuple[str, float]]:
    """Return the words of *text* that may name its subject, by stem, as they are written and with a
    weight. The first line counts most.
    """
    found: dict[str, tuple[str, float]] = {}
    for number, line in enumerate(text.strip().splitlines()):
        for word in words_of(line):
            key = stem(word)
            if word in FUNCTION_WORDS | REPAIR_WORDS or key in name or key in found:
                continue
            place = 1.0 if number == 0 else LATER_LINE
            found[key] = word, place * (GENERIC if word in GENERIC_WORDS else 1.0)
    return found


def tokens_of(text: str) -> set[str]:
    return {token.strip(".") for token in TOKEN.findall(text)}


def code_names(text: str) -> set[str]:
    """Return the names in *text* that are written as code: in backticks, before a parenthesis, with
    an underscore or an inner capital. A dotted name counts with its parts.
    """
    names = {part for match in CODE.findall(text) for name in match for part in TOKEN.findall(name)}
    names |= {token for token in TOKEN.findall(text) if "_" in token or CAMEL.search(token)}
    parts = names | {part for name in names for part in name.split(".")}
    return {name for name in parts if name.lower() not in FUNCTION_WORDS | REPAIR_WORDS and name}


def names_of(test: str) -> set[str]:
    """Return the ways to name a test: function, class, both, its file. Words alone are none."""
    path, *parts = test.partition("[")[0].split("::")
    if not parts:
        *_, last = path.split(".")
        return {last} if "_" in last else set()
    names = {part for part in parts if "_" in part or CAMEL.search(part)}
    return (
        names
        | {".".join(parts)}
        | file_names(path) - {PurePosixPath(path).stem}
        | ({PurePosixPath(path).stem} if "_" in PurePosixPath(path).stem else set())
    )


def file_names(path: str) -> set[str]:
    """Return the ways to name a file: its path, its name, its module."""
    pure = PurePosixPath(path)
    dotted = ".".join(pure.with_suffix("").parts)
    modules = {dotted, dotted.removeprefix("src.")} if "." in dotted else set()
    return {path, pure.name, *modules}
