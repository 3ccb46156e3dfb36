"""All edit operators in one explicit order, and their edits for a file: distinct, likeliest
first, each made when it may be next.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush

from .calls import arguments, elements, siblings, unwrappings, wrappings
from .conditions import exceptions, extensions
from .edit import SourceEdit
from .edit_site import EditSite, edit_sites
from .facts import ValueFacts
from .insertions import imports, insertions
from .module_index import index_module
from .names import attributes, neighbours, substitutes, unknown_names, variables
from .numbers import constants, off_by_one, offsets, slices
from .operators import arithmetic, assignments, comparisons, logic
from .spans import SourceFile, header_lines
from .statements import keywords, moves, removals, results

EXPRESSIONS: tuple[Callable[[EditSite, ast.AST], Iterator[SourceEdit]], ...] = (
    *(comparisons, arithmetic, assignments, logic, constants, off_by_one, offsets, slices),
    *(variables, unknown_names, attributes, substitutes, neighbours),
    *(arguments, siblings, wrappings, unwrappings, elements, extensions, exceptions),
)
STATEMENTS: tuple[Callable[[EditSite], Iterator[SourceEdit]], ...] = (
    results,
    keywords,
    removals,
    moves,
    insertions,
    imports,
)
FLOOR = 0.02


@dataclass(order=True, slots=True)
class _Entry:
    """Entry of the heap: an edit, or the edits of one operator at one site with a bound of their
    scores. At equal scores the operator is first, so that its edits take their place.
    """

    score: float
    found: bool
    place: tuple[int, int, str]
    make: Callable[[], Iterator[SourceEdit]] | None = field(compare=False, default=None)
    edit: SourceEdit | None = field(compare=False, default=None)
    degree: float = field(compare=False, default=0.0)


def candidates(
    source: SourceFile, suspicion: Mapping[int, float], facts: ValueFacts
) -> Iterator[tuple[float, SourceEdit]]:
    """Yield the edits of the suspicious lines of *source* with their scores, best first. Of equal
    edits the best score is kept.

    Operators run when their edits may be next. suspicion: line to suspiciousness, above 0 and at
    most 1; other lines are not edited.
    """
    heap = list(_operators(source, suspicion, facts))
    heapify(heap)
    known: set[tuple[int, int, str]] = set()
    while heap:
        entry = heappop(heap)
        if entry.edit is not None:
            if entry.place not in known:
                known.add(entry.place)
                yield -entry.score, entry.edit
            continue
        for edit in entry.make() if entry.make is not None else ():
            score = max(entry.degree, suspicion.get(edit.line, 0.0)) * edit.weight
            place = edit.start, edit.end, edit.after
            if score > 0 and edit.weight >= FLOOR and edit.after != edit.before:
                heappush(heap, _Entry(-score, True, place, edit=edit))


def _operators(
    source: SourceFile, suspicion: Mapping[int, float], facts: ValueFacts
) -> Iterator[_Entry]:
    """Yield an entry for each operator at each suspicious site."""
    turn = 0
    for site in edit_sites(source, index_module(source), facts):
        first, last = header_lines(site.statement)
        degree = max((suspicion.get(line, 0.0) for line in range(first, last + 1)), default=0.0)
        handlers = [handler.lineno for handler in getattr(site.statement, "handlers", [])]
        highest = max([degree, *(suspicion.get(line, 0.0) for line in handlers)])
        for make in _edits_of(site) if highest > 0 else ():
            turn += 1
            yield _Entry(-highest, False, (turn, 0, ""), make=make, degree=degree)


def _edits_of(site: EditSite) -> Iterator[Callable[[], Iterator[SourceEdit]]]:
    for generate in STATEMENTS:
        yield partial(generate, site)
    for propose in EXPRESSIONS:
        yield partial(_each_node, propose, site)


def _each_node(
    propose: Callable[[EditSite, ast.AST], Iterator[SourceEdit]], site: EditSite
) -> Iterator[SourceEdit]:
    for node in site.nodes:
        yield from propose(site, node)
