"""Routes from the caller's environment."""

from __future__ import annotations

import pytest
from uncaged_engine.network.problems import WebProblem
from uncaged_engine.network.route import Route, proxy_for


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ({"https_proxy": "http://low:1", "HTTPS_PROXY": "http://p:1"}, "http://low:1"),
        ({"HTTP_PROXY": "http://p:1"}, None),
        ({"ALL_PROXY": "http://all:1"}, "http://all:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example.org"}, None),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "other.org"}, "http://p:1"),
    ],
)
def test_the_proxy_is_the_one_that_the_caller_names(
    environment: dict[str, str], proxy: str | None
) -> None:
    """A proxy is named by scheme, then for all; the lower-case name wins; an excepted host needs
    none.
    """
    assert proxy_for("https://api.example.org/v1", environment) == proxy


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "proxy.example:3128", "ftp://proxy"])
def test_a_proxy_of_another_kind_is_refused(proxy: str) -> None:
    """Only HTTP proxies are used; any other fails the request instead of being left out."""
    with pytest.raises(WebProblem, match="none of http or https") as caught:
        proxy_for("https://api.example.org/", {"ALL_PROXY": proxy})
    assert caught.value.kind == "connect"


def test_a_route_over_tls_has_the_callers_certificates() -> None:
    """Certificates are part of a route only where TLS is spoken, to the server or to its proxy."""
    environment = {"SSL_CERT_FILE": "/ca.pem", "SSL_CERT_DIR": "/ca"}

    def files(url: str, proxy: str | None = None) -> tuple[str | None, str | None]:
        route = Route.of(url, environment, proxy=proxy)
        return route.ca_file, route.ca_directory

    assert files("https://api.example.org/") == ("/ca.pem", "/ca")
    assert files("http://api.example.org/") == (None, None)
    assert files("http://api.example.org/", "https://proxy.example:3128") == ("/ca.pem", "/ca")
