"""Questions about a page, with a scripted browser and model."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from uncaged_browser.questions import selectors
from uncaged_browser.questions.answering import PageQuestioner
from uncaged_browser.questions.requests import ExtractComponent
from uncaged_browser.questions.selectors import KeptSelectors
from uncaged_models.questions import ModelData

NAMES = [{"css": "#order"}]
PAGE: Mapping[str, Any] = {"url": "https://shop.test/", "title": "Shop", "text": "Order now"}


def performed(body: Mapping[str, object]) -> Any:
    return {**PAGE, "names": NAMES, "frames": []} if body["do"] == "elements" else PAGE


def test_an_element_is_found_although_its_target_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model was paid for: a file of targets that another process holds loses no answer."""
    monkeypatch.setattr(selectors, "LOCK_TIMEOUT_S", 0.01)
    path = tmp_path / "selectors.json"
    value = {"found": True, "ref": "", "text": "Order now", "explanation": "x"}
    data = ModelData(value=value, fits=True, problem="", usage={})
    questioner = PageQuestioner(performed, lambda _question: data, KeptSelectors(path))
    with path.with_name("selectors.json.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = questioner.answer(ExtractComponent(text="the order button"))
    assert found == {
        "url": PAGE["url"],
        "target": NAMES,
        "frame": [],
        "text": "Order now",
        "by": "model",
    }
    assert not path.exists()
