"""The guard of listeners: one token of the store's, this listener's host, no other page's
origin.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from uncaged_bundles.errors import DamagedError, StorageError
from uncaged_bundles.storage.store import Store
from uncaged_engine.listening.guard import Guard, token_of, token_path

TOKEN = "t" * 43
GUARD = Guard(token=TOKEN, port=8811)
HOST = (b"Host", b"127.0.0.1:8811")
BEARER = (b"Authorization", f"Bearer {TOKEN}".encode())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([HOST, BEARER], None),
        ([(b"host", b"LOCALHOST:8811"), (b"authorization", BEARER[1])], None),
        ([(b"host", b"[::1]:8811"), BEARER], None),
        ([HOST, BEARER, (b"origin", b"http://127.0.0.1:8811")], None),
        ([BEARER], 421),
        ([HOST, HOST, BEARER], 421),
        ([(b"host", b"127.0.0.1:8812"), BEARER], 421),
        ([(b"host", b"127.0.0.1"), BEARER], 421),
        ([(b"host", b"evil.example:8811"), BEARER], 421),
        ([HOST, BEARER, (b"origin", b"http://localhost:3000")], 403),
        (
            [
                HOST,
                BEARER,
                (b"origin", b"http://localhost:8811"),
                (b"origin", b"https://evil.example"),
            ],
            403,
        ),
        ([HOST, BEARER, (b"origin", b"null")], 403),
        ([HOST], 401),
        ([HOST, BEARER, BEARER], 401),
        ([HOST, (b"authorization", b"Bearer " + b"x" * 43)], 401),
        ([HOST, (b"authorization", f"Basic {TOKEN}".encode())], 401),
        ([HOST, (b"authorization", "Bearer \xff".encode("latin-1"))], 401),
    ],
)
def test_a_request_is_served_only_with_token_host_and_no_foreign_origin(
    headers: list[tuple[bytes, bytes]], status: int | None
) -> None:
    """Each header is judged by itself; one that is there twice is refused, and no denial has the
    token in it.
    """
    denied = GUARD.denial(headers)
    assert (denied.status if denied is not None else None) == status
    assert TOKEN not in f"{denied!r} {GUARD!r}"
    if denied is not None and status == 401:
        assert "`uncaged-workflow mcp config claude --http 8811`" in denied.message


OFFERED = (b"Sec-WebSocket-Protocol", f"uncaged-workflow, uncaged-token.{TOKEN}".encode())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([HOST, BEARER], None),
        ([HOST, OFFERED], None),
        ([HOST, OFFERED, (b"origin", b"http://127.0.0.1:8811")], None),
        ([HOST, (b"sec-websocket-protocol", f"uncaged-token.{TOKEN}".encode())], None),
        ([HOST], 401),
        ([HOST, (b"sec-websocket-protocol", b"uncaged-workflow")], 401),
        ([HOST, (b"sec-websocket-protocol", b"uncaged-token." + b"x" * 43)], 401),
        ([HOST, (b"sec-websocket-protocol", TOKEN.encode())], 401),
        ([HOST, OFFERED, BEARER], 401),
        ([HOST, OFFERED, OFFERED], 401),
        ([OFFERED], 421),
        ([HOST, OFFERED, (b"origin", b"https://evil.example")], 403),
        ([HOST, OFFERED, (b"origin", b"http://localhost:3000")], 403),
        ([HOST, OFFERED, (b"origin", b"null")], 403),
    ],
)
def test_a_handshake_brings_the_token_once_as_a_header_or_a_subprotocol(
    headers: list[tuple[bytes, bytes]], status: int | None
) -> None:
    """A WebSocket of a foreign origin is refused also with the token; a token that is there twice
    is refused, in whatever form.
    """
    denied = GUARD.denial(headers, websocket=True)
    assert (denied.status if denied is not None else None) == status
    assert TOKEN not in f"{denied!r}"


def test_a_subprotocol_is_no_credential_of_an_ordinary_request() -> None:
    """Only a WebSocket handshake may offer the token as a subprotocol."""
    denied = GUARD.denial([HOST, OFFERED])
    assert denied is not None
    assert denied.status == 401


def test_the_token_is_made_once_for_the_person_alone(store: Store) -> None:
    """Twenty callers at the same moment get one token, in a file of mode 0600, and no other file is
    left.
    """
    with ThreadPoolExecutor(20) as callers:
        tokens = set(callers.map(lambda _: token_of(store), range(20)))
    assert len(tokens) == 1
    path = token_path(store)
    assert path.read_text() in tokens
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in store.run.iterdir()] == ["token"]


def test_a_token_that_others_can_read_is_refused(store: Store) -> None:
    """The file says nothing then about who calls."""
    token_of(store)
    token_path(store).chmod(0o644)
    with pytest.raises(DamagedError, match="you alone"):
        token_of(store)


def test_a_token_that_is_a_link_or_empty_is_refused(store: Store, tmp_path: Path) -> None:
    """A link to another file, or an empty file, is not used as the token."""
    other = tmp_path / "other"
    other.write_text(TOKEN)
    other.chmod(0o600)
    token_path(store).symlink_to(other)
    with pytest.raises(StorageError):
        token_of(store)
    token_path(store).unlink()
    token_path(store).touch(0o600)
    with pytest.raises(DamagedError, match="no token"):
        token_of(store)


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        (b"flows.example.org", b"https://flows.example.org", None),
        (b"127.0.0.1:8811", b"https://flows.example.org", 421),
        (b"flows.example.org", b"http://flows.example.org", 403),
        (b"flows.example.org", b"http://127.0.0.1:8811", 403),
    ],
)
def test_a_listener_beyond_loopback_has_one_host_and_one_origin(
    host: bytes, origin: bytes, status: int | None
) -> None:
    guard = Guard(token=TOKEN, port=8811, origin="https://Flows.Example.org")
    headers = [(b"host", host), (b"origin", origin), (b"authorization", f"Bearer {TOKEN}".encode())]
    denied = guard.denial(headers)
    assert (None if denied is None else denied.status) == status


@pytest.mark.parametrize(
    ("guard", "hosts", "foreign"),
    [
        *(
            (
                Guard(token=TOKEN, port=8811, origin=f"https://flows.example.org{port}"),
                [b"flows.example.org", b"flows.example.org:443"],
                [b"flows.example.org:80", b"flows.example.org:8443"],
            )
            for port in ("", ":443")
        ),
        (
            Guard(token=TOKEN, port=8811, origin="https://flows.example.org:8443"),
            [b"flows.example.org:8443"],
            [b"flows.example.org", b"flows.example.org:443"],
        ),
        (
            Guard(token=TOKEN, port=80),
            [b"127.0.0.1", b"127.0.0.1:80", b"[::1]", b"localhost"],
            [b"127.0.0.1:443"],
        ),
    ],
)
def test_a_default_port_may_be_left_out(
    guard: Guard, hosts: list[bytes], foreign: list[bytes]
) -> None:
    """A host is served with and without the default port of its scheme, and so is its origin."""
    scheme = b"http://" if guard.origin is None else b"https://"
    token = (b"authorization", f"Bearer {TOKEN}".encode())
    for host in hosts:
        assert guard.denial([(b"host", host), (b"origin", scheme + host), token]) is None
    for host in foreign:
        denied = guard.denial([(b"host", host), token])
        assert denied is not None
        assert denied.status == 421
        denied = guard.denial([(b"host", hosts[0]), (b"origin", scheme + host), token])
        assert denied is not None
        assert denied.status == 403
