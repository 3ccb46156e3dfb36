"""The form of every answer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from uncaged_models.prompts.extract import Extracted, checker, extract
from uncaged_repair.roles.answers import FIRST_LINE, answer, list_names, plural
from uncaged_roles.coder import role as coder
from uncaged_roles.committer import role as committer
from uncaged_roles.planner import role as planner
from uncaged_roles.reviewer import role as reviewer


def test_every_answer_begins_with_what_it_is() -> None:
    assert answer([], {}).splitlines()[0] == FIRST_LINE


@pytest.mark.parametrize(
    ("schema", "meta"),
    [
        (
            planner.schema,
            {
                "status": "planned",
                "phases": [{"name": "repair-1", "description": "d", "acceptance": "a"}],
            },
        ),
        (planner.schema, {"status": "aborted", "reason": "no failing test"}),
        (
            coder.schema,
            {
                "status": "phase-done",
                "completedPhases": ["repair-1"],
                "filesChanged": ["a.py"],
                "summary": "s",
            },
        ),
        (
            coder.schema,
            {"status": "all-done", "completedPhases": [], "filesChanged": [], "summary": "s"},
        ),
        (
            coder.schema,
            {"status": "stuck", "completedPhases": [], "filesChanged": [], "summary": "s"},
        ),
        (reviewer.schema, {"status": "approved", "issues": []}),
        (reviewer.schema, {"status": "rejected", "issues": ["t fails"]}),
        (committer.schema, {"status": "committed", "branch": "b", "commitSha": "0" * 40}),
        (committer.schema, {"status": "unrecoverable", "error": "nothing to commit"}),
    ],
)
def test_the_block_fits_the_role_whatever_the_text_quotes(
    schema: dict[str, object], meta: dict[str, object]
) -> None:
    """An answer is taken apart as any agent's is; fences and JSON in quoted test output are no
    second block.
    """
    text = answer(["it said:", "```json", '{"status": "stuck"}', "```", "~~~", "end"], meta)
    found = extract(text, checker(schema))
    assert isinstance(found, Extracted)
    assert found.meta == meta
    assert found.content.endswith("end")


def test_a_quoted_block_that_fits_is_not_taken_for_the_answer() -> None:
    meta = {"status": "all-done", "completedPhases": [], "filesChanged": [], "summary": "s"}
    quoted = ["```json", '{"status": "stuck", "summary": "what a test printed"}', "```"]
    assert isinstance(coder.schema, Mapping)
    found = extract(answer(quoted, meta), checker(coder.schema))
    assert isinstance(found, Extracted)
    assert found.meta == meta


def test_long_lists_are_cut() -> None:
    assert list_names(["a", "b", "c"], 2) == "a, b and 1 more"
    assert list_names(["a"]) == "a"


def test_one_is_not_many() -> None:
    assert (plural(1, "test"), plural(2, "test")) == ("1 test", "2 tests")
