"""All edit operators in one explicit order, and their edits for a file as one list: distinct,
likeliest first.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from .calls import arguments, elements, siblings, unwrappings, wrappings
from .conditions import exceptions, extensions
from .edit import SourceEdit
from .edit_site import EditSite, edit_sites
from .facts import ValueFacts
from .insertions import imports, insertions
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


def candidates(
    source: SourceFile, suspicion: Mapping[int, float], facts: ValueFacts
) -> list[tuple[float, SourceEdit]]:
    """Return the edits of the suspicious lines of *source* with their scores, best first. Of equal
    edits the best score is kept.

    suspicion: line to suspiciousness, above 0 and at most 1; other lines are not edited.
    """
    found: dict[tuple[int, int, str], tuple[float, SourceEdit]] = {}
    for site in edit_sites(source, facts):
        first, last = header_lines(site.statement)
        degree = max((suspicion.get(line, 0.0) for line in range(first, last + 1)), default=0.0)
        handlers = [handler.lineno for handler in getattr(site.statement, "handlers", [])]
        if degree <= 0 and not any(line in suspicion for line in handlers):
            continue
        for edit in edits_of(site):
            score = max(degree, suspicion.get(edit.line, 0.0)) * edit.weight
            key = (edit.start, edit.end, edit.after)
            if (
                score > 0
                and edit.weight >= FLOOR
                and edit.after != edit.before
                and (key not in found or found[key][0] < score)
            ):
                found[key] = (score, edit)
    return sorted(
        found.values(), key=lambda item: (-item[0], item[1].start, item[1].end, item[1].after)
    )


def edits_of(site: EditSite) -> Iterator[SourceEdit]:
    """Yield the edits of one statement, unordered and perhaps twice."""
    for generate in STATEMENTS:
        yield from generate(site)
    for node in site.nodes:
        for propose in EXPRESSIONS:
            yield from propose(site, node)
