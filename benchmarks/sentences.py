"""Cost of reading a sentence among ten thousand flows: look-up, ranking, checks of parameters."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from statistics import median, quantiles
from typing import Any

from uncaged_bundles.validation.validate import read_bundle
from uncaged_dispatcher.calls import Interpretation, Miss
from uncaged_dispatcher.index.rule_index import RuleIndex
from uncaged_dispatcher.readings.context import SentenceContext
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_engine.effect_kinds import KNOWN

from .bench import Bench, Figure
from .filling import fill_registry
from .laboratory import Laboratory
from .table import Row

FEW, MANY = 100, 10_000
PATTERNS = 5
WORDS, FIRST_WORDS = 2_000, 30
SENTENCES = 1_000
PASSES = 3
"""Times that each sentence is read, over an index that was just opened; the least counts."""
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "ke", "li", "mo", "nu", "pa", "re", "si", "to")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Flows with their patterns, and sentences; a pattern reads about one half of them."""

    patterns: Sequence[Sequence[str]]
    sentences: Sequence[str]


def sentences(bench: Bench) -> Sequence[Row]:
    """Measure the processor time of a sentence, in this process and over one opened index."""
    count = bench.scaled(MANY)
    with bench.laboratory() as few, bench.laboratory() as many:
        material = {FEW: material_of(FEW), count: material_of(count)}
        for laboratory, size in ((few, FEW), (many, count)):
            register(laboratory, material[size])
        opened = [_opened_ms(many) for _ in bench.rounds(5)]
        added = [_added_ms(many, number) for number in range(len(bench.rounds(5)))]
        spent = {
            size: _sentences_ms(laboratory, material[size])
            for laboratory, size in ((few, FEW), (many, count))
        }
        peer = hassil_ms(material[FEW])
    return _rows(count, spent, opened, added, peer)


def _rows(
    count: int,
    spent: dict[int, list[float]],
    opened: list[float],
    added: list[float],
    peer: list[float],
) -> Sequence[Row]:
    few, many = spent[FEW], spent[count]
    title = f"a sentence among {count:,} flows with {PATTERNS} patterns each"
    return (
        Row(
            figure="sentences",
            title=f"{title}, 99th percentile",
            values=(quantiles(many, n=100)[98],),
            unit="ms",
            baseline=f"CPU, least of {PASSES}; the median is {median(many):.2f} ms",
            reach=1.0,
            missed="many rules read the sentence; a busy machine doubles the time",
        ),
        Row(
            figure="sentences",
            title=f"{title}, against {FEW} flows",
            values=(median(many) / median(few),),
            unit="×",
            baseline=f"{median(few):.2f} ms of CPU",
            reach=2.0,
            missed="more rules share words with each sentence",
        ),
        Row(
            figure="sentences",
            title=f"a sentence among {count:,} flows, against hassil among {FEW}",
            values=(median(many) / median(peer),) if peer else (),
            unit="×",
            baseline=f"{median(peer):.2f} ms of CPU" if peer else "hassil is not installed",
            reach=1.0,
        ),
        Row(
            figure="sentences",
            title=f"opening the index of {count:,} flows, with one sentence",
            values=tuple(opened),
            unit="ms",
            baseline="CPU",
            reach=50.0,
        ),
        Row(
            figure="sentences",
            title=f"the sentence after one flow was added to {count:,}",
            values=tuple(added),
            unit="ms",
            baseline="CPU, the registry's own change excluded",
            reach=20.0,
            missed="the registry's text is compared by its digest first",
        ),
    )


def material_of(count: int) -> Material:
    """Make the patterns of so many flows over one vocabulary, and sentences."""
    chance = random.Random(count)  # noqa: S311 - the same material at every run
    words = vocabulary()
    first, rest = words[:FIRST_WORDS], words[FIRST_WORDS:]
    weights = [1 / rank for rank in range(1, len(rest) + 1)]

    def phrase() -> list[str]:
        return chance.choices(rest, weights, k=chance.randint(2, 4))

    def pattern() -> str:
        parts = [chance.choice(first), *phrase()]
        if chance.random() < 0.5:
            parts.insert(1, "(the)?")
        return " ".join([*parts, chance.choice(("$(x:wildcard)", "$(n:number)", ""))]).strip()

    patterns = [[pattern() for _ in range(PATTERNS)] for _ in range(count)]
    chosen = []
    for number in range(SENTENCES):
        if number % 2:
            chosen.append(" ".join([chance.choice(first), *phrase(), *phrase()]))
        else:
            text = chance.choice(chance.choice(patterns)).replace("(the)? ", "")
            filled = text.replace("$(x:wildcard)", " ".join(phrase()))
            chosen.append(filled.replace("$(n:number)", str(chance.randint(1, 99))))
    return Material(patterns=patterns, sentences=chosen)


def vocabulary() -> list[str]:
    """Return distinct words."""
    return [one + two + three for one in SYLLABLES for two in SYLLABLES for three in SYLLABLES][
        :WORDS
    ]


def source(name: str, patterns: Sequence[str]) -> bytes:
    """Return the bundle of a flow with patterns."""
    descriptor = {
        "contract": 1,
        "name": name,
        "description": "A flow with patterns.",
        "kind": "task",
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "string"}, "n": {"type": "integer"}},
            "additionalProperties": False,
        },
        "policy": {},
        "patterns": list(patterns),
    }
    body = '\n\ndef run(input, options):\n    return {"success": True, "message": ""}\n    yield\n'
    return f"descriptor = {descriptor!r}{body}".encode()


def register(laboratory: Laboratory, material: Material) -> None:
    """Add all flows, and fill the index."""
    named = ((f"flow-{number}", patterns) for number, patterns in enumerate(material.patterns))
    fill_registry(
        laboratory.engine.store,
        ((name, read_bundle(source(name, patterns), KNOWN)) for name, patterns in named),
    )
    index = RuleIndex(laboratory.engine)
    index.refresh()
    index.close()


def _sentences_ms(laboratory: Laboratory, material: Material) -> list[float]:
    """Return the milliseconds of CPU of each sentence, the least of some passes.

    Raises:
        AssertionError: fewer sentences are read, or not read, than were made so.
    """
    return [min(spent) for spent in zip(*_passes(laboratory, material), strict=True)]


def _passes(laboratory: Laboratory, material: Material) -> Iterator[list[float]]:
    """Yield the times of all sentences over one opened index, pass by pass."""
    context = SentenceContext()
    for _ in range(PASSES):
        interpreter = Interpreter(laboratory.engine)
        results: list[object] = []

        spent = []
        for text in material.sentences:
            begin = time.process_time_ns()
            results.append(interpreter.interpret(text, context=context))
            spent.append((time.process_time_ns() - begin) / 1e6)
        yield spent
        interpreter.close()
        misses = sum(isinstance(one, Miss) for one in results)
        if not len(results) // 3 <= misses <= len(results) * 2 // 3:
            raise AssertionError(f"{misses} of {len(results)} sentences have no reading")


def _opened_ms(laboratory: Laboratory) -> float:
    """Return the processor time of opening the index and reading one sentence."""

    def read() -> None:
        interpreter = Interpreter(laboratory.engine)
        interpreter.interpret("good morning")
        interpreter.close()

    return _ms(read)


def _added_ms(laboratory: Laboratory, number: int) -> float:
    """Return the processor time of the first sentence after a flow was added.

    Raises:
        AssertionError: the new flow is not read, or rules of other flows were written again.
    """
    interpreter = Interpreter(laboratory.engine)
    interpreter.interpret("good morning")
    name = f"extra-{number}"
    patterns = [
        f"{name.replace('-', ' ')} {word}" for word in ("one", "two", "three", "four", "five")
    ]
    laboratory.engine.add(name, source(name, patterns), accept=lambda _: True)
    found: list[object] = []

    def interpret() -> None:
        found.append(interpreter.interpret(f"extra {number} one"))

    spent = _ms(interpret)
    interpreter.close()
    if not isinstance(found[0], Interpretation):
        raise AssertionError(f"the new flow is not read: {found[0]}")
    return spent


def hassil_ms(material: Material) -> list[float]:
    """Return the milliseconds of CPU of each sentence by hassil; none if it is not installed."""
    try:
        hassil: Any = import_module("hassil")
    except ImportError:
        return []
    intents = hassil.Intents.from_dict(
        {
            "language": "en",
            "intents": {
                f"flow_{number}": {
                    "data": [{"sentences": [_template(pattern) for pattern in patterns]}]
                }
                for number, patterns in enumerate(material.patterns)
            },
            "lists": {"x": {"wildcard": True}, "n": {"range": {"from": 0, "to": 99}}},
        }
    )
    passes = (
        [_ms(partial(hassil.recognize_best, text, intents)) for text in material.sentences]
        for _ in range(PASSES)
    )
    return [min(spent) for spent in zip(*passes, strict=True)]


def _template(pattern: str) -> str:
    """Return a pattern in hassil's notation."""
    return (
        pattern.replace("(the)?", "[the]")
        .replace("$(x:wildcard)", "{x}")
        .replace("$(n:number)", "{n}")
    )


def _ms(act: Callable[[], object]) -> float:
    begin = time.process_time_ns()
    act()
    return (time.process_time_ns() - begin) / 1e6


FIGURES = (Figure(name="sentences", measure=sentences),)
