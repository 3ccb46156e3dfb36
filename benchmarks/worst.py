"""Sentences of two thousand characters against grammars that multiply their readings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from uncaged_dispatcher.grammar import Grammar, load
from uncaged_dispatcher.grammar.sentences import MAX_CHARACTERS, SentenceError

from .bench import Bench, Figure
from .table import Row

NEAR_S = 0.7
CAPTURES = " ".join(f"$(c{number}:wildcard)" for number in range(8))
ENTITIES = " ".join(f"$(c{number}:CalendarDayRange)" for number in range(5))
DIVIDED = " a ".join(f"$(c{number}:wildcard)" for number in range(5))
MANY = " | ".join(["$(x:wildcard) a"] * 3000)
BODIES = (
    *("(a (a (a (a (a (a)?)?)?)?)?)* end", f"{'(a)? ' * 200} end"),
    *("(a | a b | b a | b)+ end", "(((a)* (a)*)* (a)*)* end", "((((a)+)+)+)+ end"),
    *(CAPTURES, DIVIDED, f"{DIVIDED} end", ENTITIES, "($(x:Ordinal))+ end"),
    *("($(x:wildcard) a)* end", "($(x:wildcard))+ end", f"({MANY})+ end"),
    *("(<Polite> | please)* $(x:wildcard) (<Polite> | please)* end",),
)
RECURSIVE = (
    "<Start> = <r> end -> true; <r> = a <r> <r> | a;",
    "<Start> = <r> end -> true; <r> = $(w:wildcard) a <r> | a;",
    "<Start> [spacing=none] = ($(x:wildcard) a)+ b -> true;",
    "<Start> = <r0> end -> true;"
    + "".join(f"<r{n}> = <r{n + 1}> | a <r{n + 1}> | (a)? <r{n + 1}>;" for n in range(300))
    + "<r300> = a;",
    "<Start> = <r0> end -> true;"
    + "".join(f"<r{n}> = <r{n + 1}> <r{n + 1}>;" for n in range(30))
    + "<r30> = a | a a;",
    "<Start> = $(x:<r>) -> x; <r> = $(h:<w>) $(t:<r>) -> [h, ...t] | $(h:<w>) -> [h]; <w> = a -> 1;",
)
NUMBERS = f"[{', '.join(['1'] * 9000)}]"
TEXTS = NUMBERS.replace("1", "'1'")
ENTRIES = f"{{{', '.join(f'k{number}: 1' for number in range(9000))}}}"
LARGE = (
    *((NUMBERS, "[...x]"), (NUMBERS, "x.concat(x).slice(0, 9000)"), (ENTRIES, "{...x}")),
    *((TEXTS, "[...x].join('').split('')"), (NUMBERS, "x === [...x] ? x : []")),
    *(("['a'.repeat(900000)]", "[x[0].replaceAll('a', 'b')]"), ("1", f"x + {NUMBERS}.length")),
)
"""Large values, and expressions that make another one of each."""


def worst(bench: Bench) -> Sequence[Row]:
    """Measure each grammar, sentence and operation; what is near the target, again, of which the
    least counts. Show the most.
    """
    rounds = bench.rounds(3)
    spent = []
    for grammar in grammars():
        for sentence in sentences():
            for act in _operations(grammar, sentence):
                first = _s(act)
                spent.append(first if first < NEAR_S else min(first, *(_s(act) for _ in rounds)))
    return (
        Row(
            figure="worst",
            title=f"a sentence of {MAX_CHARACTERS:,} characters, the worst of {len(spent)} cases",
            values=(max(spent),),
            unit="s",
            baseline="CPU, until its readings or a refusal",
            reach=1.0,
            missed="a step of the search costs more than its share of the limit",
        ),
    )


def grammars() -> Iterator[Grammar]:
    """Yield the grammars."""
    for text in (*(f"<Start> = {body} -> true;" for body in BODIES), *RECURSIVE):
        yield load(text)
    for first, next_one in LARGE:
        yield load(
            f"<Start> = $(x:<r>) end -> x; <r> = please $(x:<r>) -> {next_one} | please -> {first};"
        )
    yield load(
        f"<Start> = $(x:<r>) $(y:wildcard) -> [...x, y] | $(y:wildcard) -> {NUMBERS}; <r> = a -> {NUMBERS};"
    )


def sentences() -> Iterator[str]:
    """Yield sentences of the greatest length."""
    for words in ("a ", "a b ", "please ", "a"):
        count = (MAX_CHARACTERS - len(" end")) // len(words)
        yield f"{(words * count).rstrip()} end"


def _operations(grammar: Grammar, sentence: str) -> tuple[Callable[[], object], ...]:
    return (
        lambda: grammar.best(sentence),
        lambda: grammar.match(sentence),
        lambda: grammar.complete(sentence),
    )


def _s(act: Callable[[], object]) -> float:
    begin = time.process_time()
    with suppress(SentenceError):  # the refusal that the limit of work allows
        act()
    return time.process_time() - begin


FIGURES = (Figure(name="worst", measure=worst),)
