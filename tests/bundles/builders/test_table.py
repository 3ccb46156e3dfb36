"""Checks of table moderators."""

from __future__ import annotations

from typing import Any

from uncaged_bundles.authoring import END, START, Table
from uncaged_bundles.builders.table import check_table, write_graph


def by_status(*words: str) -> dict[str, Any]:
    return {"properties": {"status": {"enum": list(words)}}}


SCHEMAS = {"planner": by_status("planned", "aborted"), "coder": by_status("done", "stuck")}
GOOD: Table = {
    START: "planner",
    "planner": {"planned": "coder", "aborted": END},
    "coder": {"done": END, "stuck": "planner"},
}


def test_a_table_that_answers_everything_passes() -> None:
    """Every role reached, every status handled, END within reach."""
    assert check_table(GOOD, SCHEMAS) == ()


def test_a_word_holds_for_every_status() -> None:
    """A role whose row is a word needs no status in its schema."""
    table: Table = {START: "a", "a": "b", "b": END}
    assert check_table(table, {"a": {}, "b": {}}) == ()


def test_all_problems_are_reported_together() -> None:
    """A single error has all problems of the table."""
    table: Table = {
        START: "planer",
        "planner": {"planned": "coder", "later": "tester"},
        "writer": {"x": END},
    }
    problems = check_table(
        table, {**SCHEMAS, "free": {"properties": {"status": {"type": "string"}}}}
    )
    assert problems == (
        "row 'writer' is no role; there are: planner, coder, free",
        "role 'coder' has no row: say where it leads",
        "role 'free' has no row: say where it leads",
        "START leads to 'planer', which is no role; there are: planner, coder, free (and END)",
        "'planner' with status 'later' leads to 'tester', which is no role; there are: planner, coder, free (and END)",
        "role 'planner' may answer with status 'aborted', and no edge handles it",
        "role 'planner' has an edge for status 'later', which its schema does not allow; it allows: planned, aborted",
        "role 'planner' is never reached from START",
        "role 'coder' is never reached from START",
        "role 'free' is never reached from START",
        "END is never reached from START: no run could ever complete",
    )


def test_a_role_that_goes_by_status_must_list_its_statuses() -> None:
    """With a free text there is no telling whether a table is complete."""
    table: Table = {START: "a", "a": {"x": END}}
    assert check_table(table, {"a": {"properties": {"status": {"type": "string"}}}}) == (
        "role 'a' goes by its status, but its schema has no `status` with an enum: list the words that it may be",
    )


def test_an_unreachable_role_is_named() -> None:
    """A role that no edge leads to is a slip of the pen."""
    table: Table = {
        START: "planner",
        "planner": {"planned": END, "aborted": END},
        "coder": {"done": END, "stuck": "coder"},
    }
    assert check_table(table, SCHEMAS) == ("role 'coder' is never reached from START",)


def test_a_table_that_never_ends_is_named() -> None:
    """A circle without a way out would only stop at its limit."""
    table: Table = {
        START: "planner",
        "planner": {"planned": "coder", "aborted": "coder"},
        "coder": {"done": "planner", "stuck": "coder"},
    }
    assert check_table(table, SCHEMAS) == (
        "END is never reached from START: no run could ever complete",
    )


def test_a_table_needs_a_start_that_is_one_role() -> None:
    """Before the first step there is no status to go by."""
    rows: Table = {"planner": GOOD["planner"], "coder": GOOD["coder"]}
    assert check_table(rows, SCHEMAS) == ("START has no row: say which role comes first",)
    table: Any = {START: {"x": "planner"}, **rows}
    assert check_table(table, SCHEMAS) == (
        "START leads to {'x': 'planner'}: it must name one role, since there is no status yet",
    )


def test_a_start_that_is_no_word_is_one_problem() -> None:
    """A role object in place of its name is reported once."""
    table: Any = {**GOOD, START: 3}
    assert check_table(table, SCHEMAS) == (
        "START leads to 3: it must name one role, since there is no status yet",
    )


def test_a_target_that_is_no_word_is_named() -> None:
    """A role object in place of its name is an error like any other, not a crash."""
    table: Any = {**GOOD, "coder": {"done": ["planner"], "stuck": END}}
    assert check_table(table, SCHEMAS) == (
        "'coder' with status 'done' leads to ['planner'], which is no role; there are: planner, coder (and END)",
    )


def test_the_graph_starts_with_the_start() -> None:
    """A reader of the descriptor meets the first role first; the rows keep their order."""
    table: Table = {"b": {"x": END}, "a": "b", START: "a"}
    assert list(write_graph(table).items()) == [(START, "a"), ("b", {"x": END}), ("a", "b")]
