"""Scopes of callers: the addresses that their hosts have."""

from __future__ import annotations

import pytest
from uncaged_browser.problems import BrowserProblem
from uncaged_browser.scope import EVERYWHERE, BrowserScope


@pytest.mark.parametrize(
    ("entry", "url", "covered"),
    [
        ("shop.test", "https://www.shop.test/a", True),
        ("shop.test", "https://shop.test:8443/", True),
        ("shop.test:8443", "https://shop.test/", False),
        ("shop.test:8443", "https://shop.test:8443/", True),
        ("shop.test", "https://evilshop.test/", False),
        ("127.0.0.1", "http://127.0.0.1:80/", True),
        ("[::1]", "http://[::1]:80/", True),
        ("[::1]:80", "http://[::1]:80/", True),
        ("[::1]:81", "http://[::1]:80/", False),
        ("[::1]", "http://[::2]/", False),
    ],
)
def test_a_host_covers_names_below_it(entry: str, url: str, covered: bool) -> None:
    """A host covers itself at any port and names below it; one with a port only this port."""
    assert BrowserScope.of([entry]).allows(url) is covered


def test_a_tab_that_may_not_be_used_is_not_named() -> None:
    """The error says what the scope is, and what a tab needs where it has none."""
    tab = "chrome://settings/passwords"
    for scope, why in (
        (BrowserScope.of(["shop.test"]), "scoped to shop.test"),
        (EVERYWHERE, "web"),
    ):
        with pytest.raises(BrowserProblem, match=why) as caught:
            scope.check_tab(tab)
        assert tab not in str(caught.value)
