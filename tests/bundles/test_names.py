from __future__ import annotations

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_bundles.names import parse_flow_name


@pytest.mark.parametrize("text", ["a", "solve-issue", "a1-2b", "x" * 60, "constructor"])
def test_kebab_names_pass_as_they_are(text: str) -> None:
    """Lower-case words of letters and digits, joined by single hyphens, starting with a letter."""
    assert parse_flow_name(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "../x",
        "a/../b",
        "a\0",
        "\N{ROCKET}",
        "Solve",
        "1a",
        "-a",
        "a-",
        "a--b",
        "a_b",
        "a b",
        "a.b",
        "a\n",
        "/etc",
        "C:\\x",
        "ä",
        "x" * 61,
        "x" * 300,
    ],
)
def test_unsafe_names_are_refused_by_name(text: str) -> None:
    """No name can leave a directory, end a string early, or look like another; the error shows
    it.
    """
    with pytest.raises(UsageError) as caught:
        parse_flow_name(text)
    assert repr(text[:60]) in str(caught.value)


def test_an_empty_name_is_refused() -> None:
    """An empty name cannot be shown, so the error says that it is empty."""
    with pytest.raises(UsageError, match="empty"):
        parse_flow_name("")
