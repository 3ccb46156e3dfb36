"""Targets that a model found, kept in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_browser.questions import selectors
from uncaged_browser.questions.selectors import KeptSelectors

TARGET = [{"role": "button", "name": "Order"}, {"css": "#order"}]


def test_a_target_is_kept_by_host_and_description(tmp_path: Path) -> None:
    """Case and white space of the description do not count, the host does; the last one stays."""
    kept = KeptSelectors(tmp_path / "selectors.json")
    assert kept.find("shop.test", "The order button") is None
    kept.keep("shop.test", "The  order button", [{"css": "#old"}], [])
    kept.keep("shop.test", "the order button", TARGET, [[{"css": "iframe"}]])
    again = KeptSelectors(tmp_path / "selectors.json")
    assert again.find("shop.test", " the ORDER button") == {
        "target": TARGET,
        "frame": [[{"css": "iframe"}]],
    }
    assert again.find("evilshop.test", "the order button") is None


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"shop.test x": 7}', '{"shop.test x": {"target": [7]}}']
)
def test_a_damaged_file_counts_as_empty(tmp_path: Path, content: str) -> None:
    """Nothing is found in a torn or foreign file, and a new target takes its place."""
    path = tmp_path / "selectors.json"
    path.write_text(content)
    kept = KeptSelectors(path)
    assert kept.find("shop.test", "x") is None
    kept.keep("shop.test", "x", TARGET, [])
    assert kept.find("shop.test", "x") == {"target": TARGET, "frame": []}


def test_the_oldest_targets_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file does not grow without end."""
    monkeypatch.setattr(selectors, "MOST", 3)
    kept = KeptSelectors(tmp_path / "selectors.json")
    for number in range(5):
        kept.keep("shop.test", f"element {number}", TARGET, [])
    found = [kept.find("shop.test", f"element {number}") is not None for number in range(5)]
    assert found == [False, False, True, True, True]
