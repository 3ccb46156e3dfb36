"""The page's files and the API behind the guard, and the place of a server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from testbed.serving import authorization, running
from uncaged_bundles.errors import UsageError
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import Guard
from uncaged_serve.page.route import page_files
from uncaged_serve.server import Place

Ask = tuple[str, str, Mapping[str, str]]


@pytest.fixture
def address(engine: Engine) -> Iterator[str]:
    words = ["-m", "uncaged_cli", "serve", "--port", "0", "--read-only", "--json"]
    with running(words, engine) as server:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["address"]


def asked(address: str, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    parts = urlsplit(address)
    with closing(
        http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    ) as connection:
        connection.request(method, path, headers=dict(headers))
        with connection.getresponse() as response:
            return response.status, response.read()


@pytest.mark.slow
def test_the_pages_files_need_no_token_and_all_else_does(engine: Engine, address: str) -> None:
    """No path of the API, and no foreign host or origin, is answered without what it needs; paths
    that leave the table of files name nothing.
    """
    token = authorization(engine)
    for ask, status in {
        ("GET", "/", ()): 200,
        ("GET", "/page/modules/app.js", ()): 200,
        ("GET", "/page/../server.py", ()): 404,
        ("GET", "/page/%2e%2e/server.py", ()): 404,
        ("GET", "/page/modules/", ()): 404,
        ("POST", "/page/style.css", tuple(token.items())): 403,
        ("GET", "/healthz", ()): 200,
        ("GET", "/healthz/more", ()): 401,
        ("GET", "/healthz", (("Host", "example.org"),)): 421,
        ("POST", "/healthz", tuple(token.items())): 403,
        ("GET", "/metrics", ()): 401,
        ("GET", "/metrics", tuple(token.items())): 200,
        ("GET", "/metrics/more", tuple(token.items())): 404,
        ("GET", "/api/session", ()): 401,
        ("GET", "/api/threads", ()): 401,
        ("GET", "/api/threads", tuple(token.items())): 200,
        ("GET", "/api/threads?limit=x", tuple(token.items())): 400,
        ("GET", "/api/threads?unknown=1", tuple(token.items())): 400,
        ("GET", "/api/nothing", tuple(token.items())): 404,
        ("POST", "/api/threads", tuple(token.items())): 403,
        ("GET", "/", (("Host", "example.org"),)): 421,
        ("GET", "/", (("Origin", "http://example.org"),)): 403,
    }.items():
        method, path, headers = ask
        assert asked(address, method, path, dict(headers))[0] == status, ask
    status, body = asked(address, "GET", "/api/session", token)
    assert json.loads(body)["readOnly"] is True
    status, body = asked(address, "GET", "/api/openapi.json", token)
    described = json.loads(body)
    assert "/api/session" in described["paths"]


def test_the_page_has_no_inline_script_or_style() -> None:
    """The content security policy would refuse them."""
    index = page_files()["/"].data.decode()
    assert "<style" not in index
    assert "style=" not in index
    assert index.count("<script") == index.count('<script type="module" src="/page/')


@pytest.mark.parametrize(
    ("place", "origin"),
    [
        (Place(port=0), None),
        (
            Place(port=0, host="flows.lan", certificate=(Path("c"), Path("k"))),
            "https://flows.lan:9",
        ),
        (Place(port=0, proxy="https://flows.example.org"), "https://flows.example.org"),
    ],
)
def test_a_place_is_reached_at_one_origin(place: Place, origin: str | None) -> None:
    place.check()
    assert place.origin(9) == origin


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:9/"),
        ("localhost", "http://127.0.0.1:9/"),
        ("::1", "http://[::1]:9/"),
    ],
)
def test_loopback_is_served_without_tls(host: str, address: str) -> None:
    """The guard serves all three names of it, and the page's address is one of them."""
    place = Place(port=0, host=host)
    place.check()
    assert place.address(9) == address
    assert (
        Guard(token="t" * 43, port=9).denial([(b"host", address[7:-1].encode())], public=True)
        is None
    )


@pytest.mark.parametrize(
    "place",
    [
        Place(port=0, host="0.0.0.0"),  # noqa: S104
        Place(port=0, host="192.0.2.1"),
        Place(port=0, host="::", certificate=(Path("c"), Path("k"))),
        Place(port=0, proxy="http://flows.example.org"),
        Place(port=0, proxy="https://flows.example.org/path"),
        Place(port=0, proxy="https://flows.example.org:x"),
        Place(port=0, proxy="https://flows.example.org", host="192.0.2.1"),
    ],
)
def test_the_token_crosses_no_network_in_the_clear(place: Place) -> None:
    with pytest.raises(UsageError):
        place.check()
