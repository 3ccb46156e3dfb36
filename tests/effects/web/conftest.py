"""A browser of its own for each test; its connections are closed afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testbed.browsing import Browser
from uncaged_bundles.storage.store import Store


@pytest.fixture
def browser(store: Store) -> Iterator[Browser]:
    browser = Browser(store=store)
    yield browser
    browser.clients.close()
