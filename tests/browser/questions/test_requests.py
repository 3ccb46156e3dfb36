"""Bodies of questions and lookups."""

from __future__ import annotations

import pytest
from uncaged_browser.effect.table import EFFECTS
from uncaged_browser.operations import read_operation
from uncaged_bundles.shapes import ShapeError


@pytest.mark.parametrize(
    "body",
    [
        {"do": "extract", "schema": {"type": 7}},
        {"do": "extract", "text": "prices"},
        {"do": "extract_component", "text": ""},
        {"do": "query_content", "text": "x", "timeout_s": 1_000},
        {"do": "check_page_state", "text": "x", "target": []},
        {"do": "find", "words": ""},
        {"do": "search", "text": "x"},
        {"do": "extract_components", "text": "x"},
    ],
)
def test_a_malformed_body_is_refused(body: dict[str, object]) -> None:
    """A wrong key, value or schema is an error of the bundle before a page is read."""
    with pytest.raises(ShapeError):
        read_operation(body, table=EFFECTS)


def test_the_operations_of_a_session_have_no_questions() -> None:
    """A session, which knows no model, refuses a question by name."""
    with pytest.raises(ShapeError):
        read_operation({"do": "query_content", "text": "x"})
