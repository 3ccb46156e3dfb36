"""Outages as programs report them."""

from __future__ import annotations

import pytest
from uncaged_models.retries import is_outage, pause_after


@pytest.mark.parametrize(
    "words",
    [
        'API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}',
        "exceeded retry limit, last status: 429 Too Many Requests",
        "stream disconnected before completion: error sending request",
        "unexpected status 503 Service Unavailable",
        "[API Error: got status: RESOURCE_EXHAUSTED]",
        "502 Bad Gateway",
        "working\non it\n\nHTTP 503\n",
    ],
)
def test_an_outage_is_recognised(words: str) -> None:
    """Coding programs print such lines during an outage of their service."""
    assert is_outage(words)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "line 503 of x.py is wrong",
        "assert response.code == 500",
        "I fixed 500 places",
        "HTTP 500 in a test of the server\na\nb\nthe suite fails",
        "Invalid API key",
    ],
)
def test_an_error_of_the_work_is_no_outage(words: str) -> None:
    """Numbers in the work, and what was logged before the last lines, do not pause a thread."""
    assert not is_outage(words)


def test_the_pause_doubles_up_to_half_a_minute() -> None:
    """An endpoint that says nothing about it is asked again after half a second first."""
    assert [pause_after(tries) for tries in (1, 2, 3, 20)] == [0.5, 1.0, 2.0, 30.0]
