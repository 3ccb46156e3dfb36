"""Examples of flows: what they expect, and how a result differs from it."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import BundleError
from uncaged_bundles.examples import Example, check_examples

RESULT = {
    "success": True,
    "message": "3 files\nsecond line",
    "data": {"output": [{"name": "a.txt", "size": 1}]},
}


@pytest.mark.parametrize(
    ("expect", "wrong"),
    [
        ({"equals": "3 files\nsecond line"}, {"equals": "3 files"}),
        ({"contains": "3 files"}, {"contains": "4 files"}),
        ({"matches": r"^second \w+$"}, {"matches": r"^third"}),
        ({"schema": {"type": "string", "minLength": 3}}, {"schema": {"type": "integer"}}),
        ({"at": "data.output.0.size", "equals": 1}, {"at": "data.output.0.size", "equals": True}),
        ({"at": "data.output", "contains": "a.txt"}, {"at": "data.output", "contains": "b.txt"}),
        (
            {"at": "data", "schema": {"required": ["output"]}},
            {"at": "data", "schema": {"required": ["input"]}},
        ),
        ({"contains": "3", "matches": "files"}, {"contains": "3", "matches": "folders"}),
        (
            {"at": "data.output", "schema": {"type": "array"}},
            {"at": "data.output.7.size", "equals": 1},
        ),
    ],
)
def test_an_expectation_compares_content(
    expect: dict[str, object], wrong: dict[str, object]
) -> None:
    """An expectation that holds finds no difference; each kind of check finds its own."""
    right = Example.read({"sentence": "x", "expect": expect}, ("examples", 0))
    assert right.difference(RESULT) is None
    assert Example.read({"sentence": "x", "expect": wrong}, ("examples", 0)).difference(RESULT)


def test_success_is_compared_before_content() -> None:
    """A failure is a difference unless the example expects it, and its message can be compared as
    well.
    """
    failed = {"success": False, "message": "no such file", "data": None}
    assert (
        Example.read("x", ("examples", 0)).difference(failed)
        == 'it should succeed and failed: "no such file"'
    )
    expected = Example.read(
        {"sentence": "x", "success": False, "expect": {"contains": "no such"}}, ("examples", 0)
    )
    assert expected.difference(failed) is None
    assert expected.difference(RESULT) == 'it should fail and succeeded: "3 files\\nsecond line"'


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({}, "must be a list"),
        ([{"params": {}}], "examples[0].sentence: is missing"),
        ([{"sentence": "x", "expects": {}}], "unknown key 'expects'"),
        ([{"sentence": "x", "expect": {"at": "data"}}], "says nothing to compare with"),
        ([{"sentence": "x", "expect": {"matches": "("}}], "is no regular expression"),
        ([{"sentence": "x", "expect": {"contains": 3}}], "must be text"),
        (
            [{"sentence": "x", "expect": {"schema": {"type": "nothing"}}}],
            "is not valid JSON Schema",
        ),
    ],
)
def test_a_wrong_example_is_refused(raw: object, problem: str) -> None:
    """An example that could never be compared is refused when the flow is built, with its place."""
    with pytest.raises(BundleError) as refused:
        check_examples(raw, ("examples",))
    assert problem in str(refused.value)
