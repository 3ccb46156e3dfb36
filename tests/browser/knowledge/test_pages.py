"""Reading of pages for the index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from uncaged_browser.knowledge.pages import read_page

URL = "https://zoo.example.org/"


@pytest.mark.parametrize(
    ("html", "cut", "reason"),
    [
        ("<h1>Otters</h1><input name=q>", False, ""),
        ("<h1>Otters</h1><input type=password>", False, "it has a field for a password or a card"),
        ("<h1>Otters</h1><input autocomplete='section-a cc-number'>", False, "it has a field"),
        ("<h1>Otters</h1><input name=q>", True, "it is too long to be searched for a field"),
        ("<h1>Otters</h1><input type=password>", True, "it has a field for a password or a card"),
    ],
)
def test_a_page_that_has_or_may_have_secrets_is_private(html: str, cut: bool, reason: str) -> None:
    """A page whose HTML was cut may have a field for a password in the rest."""

    def perform(operation: Mapping[str, object]) -> Any:
        text = html if operation["do"] == "html" else "Otters"
        more = {"truncated": True} if cut and operation["do"] == "html" else {}
        return {"url": URL, "title": "Otters", "text": text, **more}

    page = read_page(perform, 1)
    assert page.private.startswith(reason) and bool(page.private) is bool(reason)
    assert page.may_have_secrets is bool(reason)
    assert page.headings == ("Otters",)
