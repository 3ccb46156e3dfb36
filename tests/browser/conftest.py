"""Browsers for the tests of one module each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testbed import browser_harness, browsers
from testbed.browser_harness import BrowserHarness
from testbed.browsers import KINDS, ControlledBrowser


@pytest.fixture(scope="module")
def harness() -> Iterator[BrowserHarness]:
    """A browser that is closed after the module's last test."""
    with browser_harness.running_browser() as running:
        yield running


@pytest.fixture(scope="module", params=KINDS)
def both_browsers(request: pytest.FixtureRequest) -> Iterator[ControlledBrowser]:
    """Each of the two implementations of `BrowserControl` in turn."""
    with browsers.running_browser(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def paired() -> Iterator[ControlledBrowser]:
    """A browser with the extension, paired."""
    with browsers.running_browser("extension") as found:
        yield found
