"""All edit operators in one explicit order, and their edits for a file: distinct, likeliest
first, each made when it may be next.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from .arguments import arguments_of_other_calls, default_values, missing_arguments
from .calls import (
    added_arguments,
    arguments,
    awaits,
    elements,
    keyword_arguments,
    siblings,
    sort_orders,
    unwrappings,
    wrappings,
)
from .conditions import exceptions, extensions
from .edit import SourceEdit
from .edit_site import EditSite, edit_sites
from .evidence import Evidence
from .facts import ValueFacts
from .insertions import (
    appends,
    ends,
    guards,
    imports,
    reassignments,
    repetitions,
    stored_parameters,
)
from .module_index import ModuleIndex, index_module
from .names import (
    attributes,
    names_for_attributes,
    neighbours,
    similar_names,
    substitutes,
    targets,
    unknown_names,
    variable_attributes,
    variables,
)
from .none_values import names_for_none, values_for_none
from .numbers import (
    constants,
    off_by_one,
    offsets,
    parts,
    shown_numbers,
    slices,
)
from .odds import bounded_weight, highest_weight, weight_of
from .operators import arithmetic, assignments, comparisons, logic
from .spans import SourceFile, header_lines
from .statements import keywords, moves, removals, results
from .texts import shown_strings, strings

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
    stored_parameters: ("parameter stored",),
    appends: ("element appended",),
    reassignments: ("assignment added", "step added"),
    ends: ("return inserted", "jump inserted"),
    repetitions: ("statement repeated",),
    guards: ("guard",),
    imports: ("import added",),
}
EXPRESSIONS: Mapping[OfNode, Sequence[str]] = {
    comparisons: ("comparison", "boundary", "operand swap"),
    arithmetic: ("operator", "operand swap", "operand alone", "sign removed", "sign reversed"),
    assignments: ("operator", "update for assignment"),
    logic: ("logic", "condition dropped", "negation", "negation removed", "branch swap"),
    constants: ("boolean", "number"),
    shown_numbers: ("number of the error",),
    strings: ("string",),
    shown_strings: ("string of the result",),
    values_for_none: ("value for None", "fitting value for None"),
    names_for_none: ("name for None",),
    off_by_one: ("off by one",),
    offsets: ("offset",),
    slices: ("slice", "whole for slice", "index", "index swap"),
    parts: ("part of a sequence",),
    variables: ("variable",),
    targets: ("target",),
    variable_attributes: ("attribute for variable",),
    unknown_names: ("unknown name",),
    names_for_attributes: ("name for attribute",),
    similar_names: ("similar name",),
    attributes: ("attribute", "method", "variable for attribute"),
    substitutes: (
        *("name for condition", "name for constant", "name for expression"),
        "condition for constant",
    ),
    neighbours: ("expression",),
    arguments: ("argument swap", "argument dropped"),
    added_arguments: ("argument added",),
    missing_arguments: ("missing argument",),
    default_values: ("default added",),
    arguments_of_other_calls: ("argument of other calls",),
    sort_orders: ("order reversed",),
    keyword_arguments: ("keyword passed",),
    siblings: ("sibling call", "other function"),
    wrappings: ("conversion", "limit", "method of a text"),
    unwrappings: ("argument for call", "object for call"),
    awaits: ("await",),
    elements: ("element", "element swap", "yield"),
    extensions: ("condition extended", "condition narrowed"),
    exceptions: ("exception added", "exception caught", "exception raised"),
}
"""Operators with the kinds of their edits, which bound the scores of what they will yield."""


Make = Callable[[], Iterator[SourceEdit]]


class _Entry(NamedTuple):
    """Entry of the heap: the edits of one operator at one site (*make*), or an edit. Entries are
    sorted by score, bounds of scores before the scores that they bound, then by place and number.

    score: below 0, so that the best is first; a bound, unless the edit is *rated*. degree: the
    suspiciousness of the site, then of the edit's line.
    """

    score: float
    rated: bool
    place: tuple[int, int, str]
    number: int
    site: EditSite
    degree: float
    make: Make | None = None
    edit: SourceEdit | None = None


def candidates(
    source: SourceFile, suspicion: Mapping[int, float], facts: ValueFacts
) -> Iterator[tuple[float, SourceEdit]]:
    """Yield the edits of the suspicious lines of *source* with their scores, best first. Of equal
    edits the best score is kept.

    Operators run when their edits may be next, and an edit is rated when it may be next. suspicion:
    line to suspiciousness, above 0 and at most 1; other lines are not edited.
    """
    index = index_module(source)
    evidence = Evidence(source, index, facts)
    heap = list(_operators(source, index, suspicion, facts))
    heapify(heap)
    number = len(heap)
    known: set[tuple[int, int, str]] = set()
    while heap:
        entry = heappop(heap)
        if entry.make is not None:
            for edit in entry.make():
                if edit.after != edit.before:
                    number += 1
                    heappush(heap, _bounded(entry, edit, number, suspicion))
        elif entry.edit is not None and entry.place not in known:
            if entry.rated:
                known.add(entry.place)
                yield -entry.score, entry.edit
            elif not evidence.keeps_missing_name(entry.edit):
                heappush(heap, _rated(entry, entry.edit, evidence))


def _bounded(
    entry: _Entry, edit: SourceEdit, number: int, suspicion: Mapping[int, float]
) -> _Entry:
    """Return the entry of an *edit* of the operator *entry*, with a bound of its score."""
    degree = max(entry.degree, suspicion.get(edit.line, 0.0))
    bound = -degree * bounded_weight(edit.kind, edit.weight)
    place = edit.start, edit.end, edit.after
    return _Entry(bound, False, place, number, entry.site, degree, edit=edit)


def _rated(entry: _Entry, edit: SourceEdit, evidence: Evidence) -> _Entry:
    """Return the entry with the traits of its *edit*, and the weight and score that follow from
    these.
    """
    traits = tuple(evidence.traits_of(entry.site, edit))
    weight = weight_of(edit.kind, edit.weight, traits)
    rated = replace(edit, weight=weight, traits=traits)
    return entry._replace(score=-entry.degree * weight, rated=True, edit=rated)


def _operators(
    source: SourceFile, index: ModuleIndex, suspicion: Mapping[int, float], facts: ValueFacts
) -> Iterator[_Entry]:
    """Yield an entry for each operator at each suspicious site."""
    degrees = {
        statement.node: _degrees(statement.node, suspicion) for statement in index.statements
    }
    suspicious = [statement for statement in index.statements if degrees[statement.node][1] > 0]
    number = 0
    for site in edit_sites(source, index, facts, suspicious):
        degree, most = degrees[site.statement]
        for make, bound in _edits_of(site):
            number += 1
            place = number, 0, ""
            yield _Entry(-most * bound, False, place, number, site, degree, make=make)


def _degrees(statement: ast.stmt, suspicion: Mapping[int, float]) -> tuple[float, float]:
    """Return the suspiciousness of *statement*'s header, and the highest with its handlers."""
    first, last = header_lines(statement)
    degree = max((suspicion.get(line, 0.0) for line in range(first, last + 1)), default=0.0)
    handlers = [handler.lineno for handler in getattr(statement, "handlers", [])]
    return degree, max([degree, *(suspicion.get(line, 0.0) for line in handlers)])


def _edits_of(site: EditSite) -> Iterator[tuple[Callable[[], Iterator[SourceEdit]], float]]:
    """Yield each operator for *site* with the highest weight that its edits may have."""
    for generate, kinds in STATEMENTS.items():
        yield partial(generate, site), highest_weight(kinds)
    for propose, kinds in EXPRESSIONS.items():
        yield partial(_each_node, propose, site), highest_weight(kinds)


def _each_node(propose: OfNode, site: EditSite) -> Iterator[SourceEdit]:
    for node in site.nodes:
        yield from propose(site, node)
