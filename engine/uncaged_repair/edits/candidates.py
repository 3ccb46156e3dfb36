"""All edit operators in one explicit order, and their edits for a file: distinct, likeliest
first, each made when it may be next.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heapify, heappop, heappush

from .calls import (
    arguments,
    elements,
    keyword_arguments,
    siblings,
    unwrappings,
    wrappings,
)
from .conditions import exceptions, extensions
from .edit import SourceEdit
from .edit_site import EditSite, edit_sites
from .evidence import traits_of
from .facts import ValueFacts
from .insertions import imports, insertions
from .module_index import index_module
from .names import attributes, neighbours, similar_names, substitutes, unknown_names, variables
from .numbers import constants, off_by_one, offsets, slices
from .odds import highest_weight, weight_of
from .operators import arithmetic, assignments, comparisons, logic
from .spans import SourceFile, header_lines
from .statements import keywords, moves, removals, results

OfStatement = Callable[[EditSite], Iterator[SourceEdit]]
OfNode = Callable[[EditSite, ast.AST], Iterator[SourceEdit]]
STATEMENTS: Mapping[OfStatement, Sequence[str]] = {
    results: (
        *("return added", "value returned", "operand added"),
        *("result assigned", "assignment for comparison"),
    ),
    keywords: ("branch", "jump"),
    removals: ("statement removed",),
    moves: ("statement order", "indentation"),
    insertions: (
        *("parameter stored", "element appended", "assignment added", "step added"),
        *("return inserted", "jump inserted", "statement repeated", "guard"),
    ),
    imports: ("import added",),
}
EXPRESSIONS: Mapping[OfNode, Sequence[str]] = {
    comparisons: ("comparison", "boundary", "operand swap"),
    arithmetic: ("operator", "operand swap", "operand alone", "sign removed"),
    assignments: ("operator", "update for assignment"),
    logic: ("logic", "condition dropped", "negation", "negation removed", "branch swap"),
    constants: (
        *("boolean", "number", "number of the error", "string"),
        *("string of the error", "value for None", "name for None"),
    ),
    off_by_one: ("off by one",),
    offsets: ("offset",),
    slices: ("slice", "whole for slice", "part of a sequence", "index", "index swap"),
    variables: ("variable", "target", "attribute for variable"),
    unknown_names: ("unknown name",),
    similar_names: ("similar name",),
    attributes: ("attribute", "method", "variable for attribute"),
    substitutes: (
        *("name for condition", "name for constant", "name for expression"),
        "condition for constant",
    ),
    neighbours: ("expression",),
    arguments: ("argument swap", "argument dropped", "argument added", "order reversed"),
    keyword_arguments: ("keyword passed",),
    siblings: ("sibling call", "other function"),
    wrappings: ("conversion", "limit", "method of a text"),
    unwrappings: ("argument for call", "object for call", "await"),
    elements: ("element", "element swap", "yield"),
    extensions: ("condition extended", "condition narrowed"),
    exceptions: ("exception added", "exception caught", "exception raised"),
}
"""Operators with the kinds of their edits, which bound the scores of what they will yield."""


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
            if edit.after != edit.before:
                score = max(entry.degree, suspicion.get(edit.line, 0.0)) * edit.weight
                place = edit.start, edit.end, edit.after
                heappush(heap, _Entry(-score, True, place, edit=edit))


def _rated(site: EditSite, make: Callable[[], Iterator[SourceEdit]]) -> Iterator[SourceEdit]:
    """Yield the edits with their traits and the weights that follow from these."""
    for edit in make():
        traits = tuple(traits_of(site, edit))
        weight = weight_of(edit.kind, edit.weight, traits)
        yield replace(edit, weight=weight, traits=traits)


def _operators(
    source: SourceFile, suspicion: Mapping[int, float], facts: ValueFacts
) -> Iterator[_Entry]:
    """Yield an entry for each operator at each suspicious site."""
    turn = 0
    for site in edit_sites(source, index_module(source), facts):
        first, last = header_lines(site.statement)
        degree = max((suspicion.get(line, 0.0) for line in range(first, last + 1)), default=0.0)
        handlers = [handler.lineno for handler in getattr(site.statement, "handlers", [])]
        most = max([degree, *(suspicion.get(line, 0.0) for line in handlers)])
        for make, bound in _edits_of(site) if most > 0 else ():
            turn += 1
            yield _Entry(
                -most * bound, False, (turn, 0, ""), make=partial(_rated, site, make), degree=degree
            )


def _edits_of(site: EditSite) -> Iterator[tuple[Callable[[], Iterator[SourceEdit]], float]]:
    """Yield each operator for *site* with the highest weight that its edits may have."""
    for generate, kinds in STATEMENTS.items():
        yield partial(generate, site), highest_weight(kinds)
    for propose, kinds in EXPRESSIONS.items():
        yield partial(_each_node, propose, site), highest_weight(kinds)


def _each_node(propose: OfNode, site: EditSite) -> Iterator[SourceEdit]:
    for node in site.nodes:
        yield from propose(site, node)
