"""Problems with the address of a request, as the bundle hears them."""

from __future__ import annotations

import pytest
from uncaged_engine.network.problems import WebProblem
from uncaged_engine.network.target import canonical, read_target, redirect_target


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("effect", "ftp://a.example/"),
        ("effect", "https://a..example/"),
        ("refused-address", "http://2130706433/"),
    ],
)
def test_a_request_to_a_wrong_address_has_a_kind(kind: str, text: str) -> None:
    """Addresses and redirects that cannot be read are the effect's fault; disguised ones are
    refused addresses.
    """
    with pytest.raises(WebProblem) as requested:
        read_target(text)
    with pytest.raises(WebProblem) as redirected:
        redirect_target(read_target("https://a.example/"), text)
    assert (requested.value.kind, redirected.value.kind) == (kind, kind)


@pytest.mark.parametrize(("kind", "host"), [("effect", "a..example"), ("refused-address", "127.1")])
def test_a_wrong_host_has_a_kind(kind: str, host: str) -> None:
    """A host that is none is the effect's fault; an address in disguise is a refused address."""
    with pytest.raises(WebProblem) as caught:
        canonical(host)
    assert caught.value.kind == kind
