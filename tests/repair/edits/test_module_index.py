"""Index of a module, from one walk."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from types import FrameType

import pytest
from uncaged_repair.edits.candidates import candidates
from uncaged_repair.edits.edit_site import EditSite
from uncaged_repair.edits.evidence import Evidence
from uncaged_repair.edits.facts import ValueFacts
from uncaged_repair.edits.module_index import index_module
from uncaged_repair.edits.spans import SourceFile, read_source

FUNCTION = """
def area_{0}(width, height, margin):
    total = width * height
    for part in range(margin):
        if part > 2 and total:
            total += part
        else:
            raise ValueError(f"{{part}} of {{total}}")
    return total
"""


def test_the_nodes_of_a_statement_are_its_own() -> None:
    """Neither the body of a compound statement nor the bodies of its handlers belong to it; the
    handlers themselves do.
    """
    source = read_source("x.py", b"try:\n    a = 1\nexcept (B, C):\n    d = 2\n")
    first = index_module(source).statements[0]
    assert first.node is source.tree.body[0]
    assert {node.id for node in first.nodes if isinstance(node, ast.Name)} == {"B", "C"}
    assert any(isinstance(node, ast.ExceptHandler) for node in first.nodes)


def test_a_scope_holds_the_functions_inside_it_and_not_those_beside_it() -> None:
    """A name that an inner function binds belongs to the outer one and the module, too, and to no
    other function.
    """
    text = (
        b"def f(a):\n    b = a\n    def g(c):\n        d = c\n    return g\ndef h():\n    e = 1\n"
    )
    index = index_module(read_source("x.py", text))
    bound = {
        getattr(statement.scopes[0].node, "name", ""): statement.scopes[0].bound
        for statement in index.statements
    }
    assert bound["f"] == ["a", "b", "d"]
    assert bound["g"] == ["c", "d"]
    assert bound["h"] == ["e"]
    assert set(bound[""]) == {"b", "d", "e"}
    assert index.variables == {}


def test_the_names_of_a_module_are_those_that_it_assigns_itself() -> None:
    text = b"import os\nSIZE: int = 3\nleft, right = 1, 2\nclass A:\n    inside = 1\n"
    assert list(index_module(read_source("x.py", text)).variables) == ["SIZE", "left", "right"]


def calls_of(
    function: Callable[..., object],
    source: SourceFile,
    lines: Sequence[int],
    most: int | None = None,
) -> int:
    """Count the calls of *function* (for a generator its steps) while the first *most* edits of
    *lines* are made, or all.
    """
    called = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal called
        called += event == "call" and frame.f_code is function.__code__

    sys.setprofile(count)
    try:
        for _ in islice(candidates(source, dict.fromkeys(lines, 1.0), ValueFacts()), most):
            pass
    finally:
        sys.setprofile(None)
    return called


def children_visited(source: SourceFile, lines: Sequence[int]) -> int:
    """Count how often a child of a node is visited while all edits of *lines* are made."""
    return calls_of(ast.iter_child_nodes, source, lines)


@pytest.mark.slow
def test_each_node_is_visited_a_bounded_number_of_times() -> None:
    """A file with four times as many functions costs four times as many visits, not sixteen, and a
    node is visited a few times only.
    """
    few, many = (
        read_source("x.py", "".join(FUNCTION.format(number) for number in range(size)).encode())
        for size in (5, 20)
    )
    first, second = (
        children_visited(source, range(1, len(source.line_starts) + 1)) for source in (few, many)
    )
    assert second <= 4.2 * first
    assert second <= 8 * sum(1 for _ in ast.walk(many.tree))


def test_one_function_costs_as_much_in_a_large_file_as_in_a_small_one() -> None:
    """The edits of one function of a large file are made without a look at the other functions,
    apart from the one walk that makes the index.
    """
    text = "".join(FUNCTION.format(number) for number in range(30)).encode()
    source = read_source("x.py", text)
    nodes = sum(1 for _ in ast.walk(source.tree))
    visited = children_visited(source, range(2, 10))
    assert nodes < visited < 3 * nodes


def test_the_first_edits_of_a_large_file_cost_few_others() -> None:
    """Of thousands of possible edits, the first hundred need a few hundred texts, and the traits of
    fewer edits than that: likelier kinds come first, and an edit is rated when it may be next.
    """
    source = read_source("x.py", "".join(map(FUNCTION.format, range(40))).encode())
    lines = range(1, len(source.line_starts) + 1)
    made = calls_of(EditSite.edit_span, source, lines, 100)
    rated = calls_of(Evidence._familiarity, source, lines, 100)
    assert 100 <= rated < made < 2500
