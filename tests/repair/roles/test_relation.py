"""The comparison of an issue's text with failing tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from uncaged_repair.roles.relation import (
    GroupFacts,
    SuiteFacts,
    is_general,
    relate,
)
from uncaged_repair.roles.stems import same_stem, stem, stems_of


def group(
    test: str,
    source: str = "",
    error: tuple[str, str] = ("AssertionError", ""),
    files: Mapping[str, float] | None = None,
    functions: Mapping[str, float] | None = None,
) -> GroupFacts:
    return GroupFacts(
        tests=(test,), source=source, errors=(error,), files=files or {}, functions=functions or {}
    )


PAGES = group(
    "tests/test_catalogue.py::test_pages_do_not_overlap",
    "def test_pages_do_not_overlap():\n    assert page(NUMBERS, 2)[0] == 11\n",
    files={"shop/catalogue.py": 0.3},
    functions={"page": 0.1},
)
HOME = group(
    "tests/test_settings.py::test_home_directory",
    "def test_home_directory():\n    assert home() == os.environ['SHOP_HOME']\n",
    ("KeyError", "'SHOP_HOME'"),
    files={"shop/settings.py": 0.2},
    functions={"home": 0.0, "load_settings": 0.1},
)
SUITE = SuiteFacts(passing=40, having={"shop": 38, "number": 20}, name=stems_of("shop"))


def kinds(text: str, groups: Sequence[GroupFacts] = (PAGES, HOME)) -> list[str]:
    return [relation.kind for relation in relate(text, groups, SUITE)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "fix the failing tests",
        "Make the tests pass!",
        "please get CI green again",
        "Fix the bug.",
        "Why do the shop's tests fail?",
    ],
)
def test_a_general_request_is_related_to_every_failing_test(text: str) -> None:
    """A prompt without a subject asks for whatever fails."""
    assert kinds(text) == ["general", "general"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("test_home_directory fails on my machine", ["none", "test"]),
        ("see tests/test_settings.py", ["none", "test"]),
        ("tests/test_catalogue.py::test_pages_do_not_overlap is red", ["test", "none"]),
        ("`page` returns too much", ["function", "none"]),
        ("load_settings() crashes", ["none", "function"]),
        ("there is something odd in shop/catalogue.py", ["file", "none"]),
        ("see shop.settings for the cause", ["none", "file"]),
    ],
)
def test_a_name_decides(text: str, expected: list[str]) -> None:
    """A test, function or file that the text names is the strongest relation."""
    assert kinds(text) == expected


SAME_FILE = tuple(
    group(f"tests/test_till.py::TestTill::{name}", functions={function: 0.0})
    for name, function in (("test_total", "total"), ("test_change", "change_for"))
)
SAME_NAME = tuple(
    group(f"tests/test_till.py::{name}::test_total", functions={function: 0.0})
    for name, function in (("TestTill", "total"), ("TestVoucher", "value_of"))
)
UNITTEST = tuple(
    group(f"tests.test_till.{name}", functions={function: 0.0})
    for name, function in (("Till.test_total", "total"), ("Till.test_change", "change_for"))
)


@pytest.mark.parametrize(
    ("text", "groups", "expected"),
    [
        ("tests/test_till.py::TestTill::test_total fails", SAME_FILE, ["test", "none"]),
        (
            "make the tests pass: tests/test_till.py::TestTill::test_change",
            SAME_FILE,
            ["none", "test"],
        ),
        ("TestTill::test_total", SAME_FILE, ["test", "none"]),
        ("fix TestTill.test_total", SAME_FILE, ["test", "none"]),
        ("tests/test_till.py::TestTill::test_gone fails", SAME_FILE, ["none", "none"]),
        ("make the tests pass: tests/test_till.py::test_gone", SAME_FILE, ["none", "none"]),
        ("tests/test_till.py::TestTill", SAME_FILE, ["test", "test"]),
        ("TestTill::test_total and `change_for` are wrong", SAME_FILE, ["test", "function"]),
        ("TestTill::test_total, and test_change too", SAME_FILE, ["test", "test"]),
        ("TestTill::test_total and the rest of tests/test_till.py", SAME_FILE, ["test", "test"]),
        ("see tests/test_till.py", SAME_FILE, ["test", "test"]),
        ("TestVoucher.test_total", SAME_NAME, ["none", "test"]),
        (
            "tests/test_till.py::TestTill::test_total: test_total is new",
            SAME_NAME,
            ["test", "none"],
        ),
        ("test_total", SAME_NAME, ["test", "test"]),
        ("tests.test_till.Till.test_total", UNITTEST, ["test", "none"]),
        ("FAIL: test_change (tests.test_till.Till.test_change)", UNITTEST, ["none", "test"]),
        ("fix Till.test_total", UNITTEST, ["test", "none"]),
        ("tests/test_till.py::Till::test_total", UNITTEST, ["test", "none"]),
    ],
)
def test_the_id_of_a_test_names_that_test_alone(
    text: str, groups: Sequence[GroupFacts], expected: list[str]
) -> None:
    """Another failing test of the same file, class or name is wanted only if the text outside of
    the id relates to it.
    """
    assert kinds(text, groups) == expected


def test_the_id_of_a_test_chooses_from_its_group() -> None:
    """Of tests with one cause, those that the text names are wanted, with all parametrisations."""
    path = "tests/test_till.py::test_"
    names = tuple(f"{path}{name}" for name in ("total[1]", "total[2]", "sum", "change"))
    one = GroupFacts(tests=names, files={}, functions={})

    def wanted(text: str) -> list[str]:
        [relation] = relate(text, [one], SUITE)
        return [name.removeprefix(path) for name in relation.tests]

    assert wanted(f"{path}total fails") == ["total[1]", "total[2]"]
    assert wanted(f"{path}total[2] fails") == ["total[2]"]
    assert wanted(f"{path}sum fails, test_change as well") == ["sum", "change"]
    assert wanted("all of test_till.py") == []


def test_rare_words_are_a_relation_and_are_reported() -> None:
    """Only the group that shares the subject's words is related, and the words are named."""
    first, second = relate("The second page of a catalogue repeats a row", (PAGES, HOME), SUITE)
    assert (first.kind, second.kind) == ("words", "none")
    assert {"page", "catalogue"} <= set(first.words)


@pytest.mark.parametrize(
    "text",
    [
        "The shop reports an error when the value is wrong; fix the bug and the test",
        "Unable to log in with a password that has an umlaut",
        "Sums are rounded down to whole cents",
        "The number of the order is missing from the mail",
    ],
)
def test_common_words_and_the_name_of_the_repository_are_no_relation(text: str) -> None:
    """An issue about another subject leaves all failing tests alone, however it is worded."""
    assert kinds(text) == ["none", "none"]


def test_a_function_that_nearly_every_test_runs_is_no_evidence() -> None:
    """The name of an entry point says nothing about the test that runs it."""
    entry = group("tests/test_mail.py::test_umlauts", functions={"main": 0.9, "encode": 0.0})
    assert kinds("main() prints the sum twice", [entry]) == ["none"]


def test_each_item_of_a_list_has_a_subject_of_its_own() -> None:
    """A list of complaints is related to the tests of each, though one of them names a function."""
    text = (
        "Two complaints:\n\n1. `page` shows a row twice.\n"
        "2. The home directory of the settings is not found."
    )
    assert kinds(text) == ["function", "words"]


def test_a_quoted_failure_is_a_relation() -> None:
    """The message of the failure, pasted into the issue, is as good as a name."""
    broken = group("t.py::test_x", error=("ValueError", "cannot divide the bill by zero people"))
    text = "I get:\n  ValueError: cannot divide the bill\n  by zero people"
    assert kinds(text, [broken]) == ["message"]


def test_a_long_text_needs_more_than_a_short_one() -> None:
    """Words that a long report shares by chance are no relation."""
    chance = "We deploy to three regions and the overlap of the rollout windows was announced. " + (
        " ".join(f"paragraph{chr(97 + number)}" * 2 for number in range(26))
        + " Customers in Berlin complain about invoices, receipts, taxes, discounts, vouchers, "
        "shipping, parcels, couriers, refunds, currencies, and translations of the checkout."
    )
    assert kinds(chance) == ["none", "none"]


@pytest.mark.parametrize(
    ("left", "right"),
    [("page", "pages"), ("paging", "page"), ("round", "rounding"), ("subtract", "subtraction")],
)
def test_forms_of_a_word_have_one_stem(left: str, right: str) -> None:
    """Singular, plural and derived forms match."""
    assert same_stem(stem(left), stem(right))


def test_a_subject_makes_a_request_specific() -> None:
    """A name in a request for repair is its subject."""
    assert not is_general("fix the failing test of `page`")
    assert not is_general("fix the pagination")
    assert not is_general("make the tests pass: tests.test.Tests.test")
