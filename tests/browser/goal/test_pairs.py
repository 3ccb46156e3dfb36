"""Pairs `key: value` of a prompt."""

from __future__ import annotations

import pytest
from uncaged_browser.goal.pairs import BeyondForms, hidden_pairs, normal, read_pairs


@pytest.mark.parametrize(
    ("prompt", "pairs"),
    [
        ("Name: Ada", [("Name", "Ada")]),
        ("name: Ada, mail: ada@x.org", [("name", "Ada"), ("mail", "ada@x.org")]),
        ("Name: Ada\n- Size : large\n", [("Name", "Ada"), ("Size", "large")]),
        ("Street: Main St 1, Berlin, city: X", [("Street", "Main St 1, Berlin"), ("city", "X")]),
        ("at: Monday, 10:30", [("at", "Monday, 10:30")]),
        ("Site: https://a.test/x, n: 1", [("Site", "https://a.test/x"), ("n", "1")]),
        ('Text: "a, b: c\nd \\"e\\"", n: 1', [("Text", 'a, b: c\nd "e"'), ("n", "1")]),
        ("Text: Hello, delete: all\nName: Ada", [("Text", "Hello, delete: all"), ("Name", "Ada")]),
        ("localhost:8000/form\nName: Ada", [("Name", "Ada")]),
    ],
)
def test_pairs_are_read_from_lines_and_between_commas(
    prompt: str, pairs: list[tuple[str, str]]
) -> None:
    """A comma ends a value only in a single line, before another pair."""
    found = read_pairs(prompt, "http://localhost:8000/form")
    assert [(pair.key, pair.value) for pair in found] == pairs


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("", "no pairs"),
        ("find the price of a chair", "'find the price of a chair' in the prompt is no pair"),
        ("Name: Ada\nthen delete the account", "'then delete the account' in the prompt"),
        ("please send\nName: Ada", "'please send'"),
        ("Name: Ada, name: Bob", "'name' twice"),
        ("\n".join(f"{'k' * (n + 1)}: 1" for n in range(101)), "no pair|at most 100"),
    ],
)
def test_a_prompt_with_anything_else_is_refused(prompt: str, message: str) -> None:
    """Text that is no pair asks for more than a form can do."""
    with pytest.raises(BeyondForms, match=message):
        read_pairs(prompt)


def test_a_value_that_may_hide_a_pair_names_its_key() -> None:
    """Only a value in quotes is taken as it is."""
    several, quoted = read_pairs('a: x, mail: y; tel: z\nb: "x, mail: y"')
    assert (hidden_pairs(several), hidden_pairs(quoted)) == (["mail", "tel"], [])


def test_labels_are_compared_without_case_punctuation_and_remark() -> None:
    """A label of punctuation alone is equal to nothing."""
    assert normal("E-Mail * (required)") == normal("email")
    assert normal("First name:") == normal("FIRST NAME") != normal("Last name")
    assert normal("Größe") == normal("GRÖSSE")
    assert normal("(optional)") == "optional"
