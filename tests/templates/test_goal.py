"""Limits that the flow `web-goal` gives to its agent's browser."""

from __future__ import annotations

from typing import Any

import pytest
from uncaged_templates.browsing.goal import drive_goal


def limits_for(url: str) -> dict[str, Any]:
    body = next(drive_goal({"params": {"url": url}, "prompt": "look"}))
    limits: dict[str, Any] = body["role"]["within"]["browser"]
    return limits


@pytest.mark.parametrize(
    "url",
    [
        *("localhost:8000/x", "http://127.0.0.1:9/", "http://10.1.2.3/", "192.168.0.7"),
        *("http://172.20.0.1:80/", "http://[::1]:8080/", "http://printer.local/"),
    ],
)
def test_a_page_of_this_network_may_be_opened(url: str) -> None:
    """An address that is named as one of this machine or its network."""
    assert limits_for(url)["private"] is True


@pytest.mark.parametrize(
    "url",
    [
        *("https://10.evil.test/", "http://127.0.0.1.evil.test/", "http://192.168.evil.test:80/"),
        *("172.16.evil.test", "http://localhost.evil.test/", "shop.example.org", "8.8.8.8"),
    ],
)
def test_a_name_that_looks_like_such_an_address_is_a_public_one(url: str) -> None:
    """Else its owner could point it at this machine."""
    assert limits_for(url)["private"] is False
