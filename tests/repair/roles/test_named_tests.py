"""Test ids in an issue's text."""

from __future__ import annotations

import pytest
from uncaged_repair.roles.named_tests import matching_tests, split_ids

A = "tests/test_x.py::TestClass::test_a"
B = "tests/test_x.py::TestClass::test_b"
OTHER = "tests/test_x.py::TestOther::test_a"
PLAIN = "tests/test_x.py::test_a"
ONE = "tests/test_y.py::test_sizes[1-2]"
TWO = "tests/test_y.py::test_sizes[a b]"
DEEP = "tests/deep/test_x.py::TestClass::test_a"
DOTTED = "tests.test_u.TestClass.test_c"
PYTEST = (A, B, OTHER, PLAIN, ONE, TWO)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{A} fails", {A}),
        (f"make the tests pass: {PLAIN}.", {PLAIN}),
        (f"`{B}`, please", {B}),
        (f"./{A}", {A}),
        (f"/home/ada/shop/{A}", {A}),
        ("test_x.py::TestClass::test_b", {B}),
        ("TestClass::test_a", {A}),
        ("TestClass.test_a is red", {A}),
        ("tests.test_x.TestClass.test_a", {A}),
        ("test_x.TestOther.test_a.", {OTHER}),
        ("____ TestClass.test_b ____", {B}),
        ("tests/test_x.py::TestClass", {A, B}),
        ("tests.test_x.TestClass", {A, B}),
        (f"{A} of tests/test_x.py::TestClass", {A}),
        ("tests/test_y.py::test_sizes", {ONE, TWO}),
        (f"FAILED {TWO} - assert 1 == 2", {TWO}),
        ("FAIL: test_a (tests.test_x.TestClass.test_a)", {A}),
        ("FAIL: test_a (tests.test_x.TestClass)", {A}),
        ("tests/test_x.py::test_gone", set()),
        ("tests/test_z.py::test_a", set()),
    ],
)
def test_an_id_names_its_test_alone(text: str, expected: set[str]) -> None:
    """The forms of pytest and unittest, with a longer or shorter path, name one test, its
    parametrisations, or a class.
    """
    ids = split_ids(text, PYTEST).ids
    assert ids
    assert {test for name in ids for test in matching_tests(name, PYTEST)} == expected


@pytest.mark.parametrize(
    "text",
    [
        f"{DOTTED} fails",
        "TestClass.test_c",
        "test_c (tests.test_u.TestClass)",
        "tests/test_u.py::TestClass::test_c",
    ],
)
def test_an_id_names_a_test_of_unittest(text: str) -> None:
    """The tests of unittest have dotted names, and are found by pytest's form, too."""
    tests = (DOTTED, "tests.test_u.TestClass.test_d")
    [name] = split_ids(text, tests).ids
    assert matching_tests(name, tests) == (DOTTED,)


@pytest.mark.parametrize(
    "text",
    [
        "see tests/test_x.py",
        "shop.settings.load() and tests.test_x are slow",
        "std::vector is no Python",
        "test_a and TestClass",
        "e.g. django.test.TestCase",
        "the version 3.11 of shop.pages.page",
        "as in test_x.py, etc.",
    ],
)
def test_files_modules_and_functions_are_no_ids(text: str) -> None:
    """A text without an id stays as it is."""
    split = split_ids(text, PYTEST)
    assert (split.ids, split.rest) == ((), text)


def test_an_equal_path_goes_before_a_longer_one() -> None:
    """A test in a file of the same name further down is not named."""
    assert matching_tests(A, (A, DEEP)) == (A,)
    assert matching_tests("test_x.py::TestClass::test_a", (A, DEEP)) == (A, DEEP)


def test_pasted_output_adds_nothing_to_its_id() -> None:
    """Traceback, progress and header of a named test do not name the other tests of its file."""
    text = (
        f"FAILED {A} - assert 1 == 2\n\ntests/test_x.py .F.. [100%]\n___ TestClass.test_a ___\n"
        "self = <tests.test_x.TestClass testMethod=test_a>\n"
        "    def test_a(self):\ntests/test_x.py:12: AssertionError\n"
        '  File "/srv/tests/test_x.py", line 12, in test_a\n'
    )
    split = split_ids(text, PYTEST)
    assert {test for name in split.ids for test in matching_tests(name, PYTEST)} == {A}
    assert not any(word in split.rest for word in ("test_a", "TestClass", "test_x.py"))
    assert "tests/test_y.py" in split_ids(f"{A}, also tests/test_y.py", PYTEST).rest


@pytest.mark.parametrize("part", ["a", "a/", "a."])
def test_a_long_text_without_spaces_is_read_once(part: str) -> None:
    """Encoded data in a prompt takes no time that grows with the square of its length."""
    text = part * (100_000 // len(part))
    assert split_ids(text, PYTEST).ids == ()
