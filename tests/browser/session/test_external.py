"""The switch for the extension, where its file of pairings is damaged."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest
from uncaged_browser.relay.pairing import pairings_path
from uncaged_browser.session.external import ExternalBrowser
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.store import Store

if TYPE_CHECKING:
    from playwright.async_api import Playwright


def test_damaged_pairings_are_a_problem_of_the_status(store: Store) -> None:
    """The status of a session names the file and the remedy; the switch itself is refused."""
    pairings_path(store).write_text("[1")
    external = ExternalBrowser(cast("Playwright", None), store, 0, lambda: 9)
    status = external.status()
    assert (status["on"], status["paired"]) == (False, 0)
    assert str(status["problem"]).startswith(f"{pairings_path(store)} holds no pairings; remove it")
    with pytest.raises(DamagedError, match="remove it, then pair"):
        asyncio.run(external.switch_on())
    pairings_path(store).unlink()
    assert "problem" not in external.status()
