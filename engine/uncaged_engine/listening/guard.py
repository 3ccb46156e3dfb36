"""Guard of listeners. A request needs the store's token and this listener as its host, and no
foreign origin.

Rule 1: the token is a file that only its owner can read, made once; a request without the token is
refused.
Rule 2: the token is in no address, no log and no error; it is compared in constant time.
Rule 3: a header that could be read in two ways (twice, or missing) is refused.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from uncaged_bundles.errors import DamagedError, StorageError
from uncaged_bundles.storage.store import Store

LOOPBACK = "127.0.0.1"
LOCAL_HOSTS = (LOOPBACK, "localhost", "::1")
"""Hosts that are served without TLS."""
TOKEN_BYTES = 32
CREDENTIAL_SUBPROTOCOL = "uncaged-token."
"""Begins the subprotocol in which a web page offers the token, because it cannot set the header
`Authorization` of a WebSocket.
"""
_BEARER = b"Bearer "
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_PORT = re.compile(r":[0-9]+$")
_TOKEN = re.compile(rb"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """Response to a refused request: HTTP status, message, headers."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Checks of requests to one listener. The token is not in the repr.

    origin: the only origin at which a listener beyond loopback is reached, such as
    ``https://flows.example.org``. None: loopback, by HTTP.
    """

    token: str = field(repr=False)
    port: int
    origin: str | None = None

    def _served(self) -> tuple[set[bytes], set[bytes]]:
        """Return the hosts and the origins of this listener, as headers have them."""
        if self.origin is not None:
            scheme, _, host = self.origin.lower().partition("://")  # as browsers write it
            named = [host]
        else:
            scheme, named = "http", [f"{in_address(host)}:{self.port}" for host in LOCAL_HOSTS]
        hosts = {spelling.encode() for host in named for spelling in _spellings(scheme, host)}
        return hosts, {f"{scheme}://".encode() + host for host in hosts}

    def denial(
        self,
        headers: Iterable[tuple[bytes, bytes]],
        *,
        websocket: bool = False,
        public: bool = False,
    ) -> Denial | None:
        """Return the refusal of a request with these headers; None if it passes. Header names are
        case-insensitive.

        websocket: a handshake, which may bring the token as a subprotocol instead. public: what is
        asked for holds no secret and needs no token.
        """
        found: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            found.setdefault(name.lower(), []).append(value)
        hosts, origins = self._served()
        if len(found.get(b"host", ())) != 1 or found[b"host"][0].lower() not in hosts:
            return Denial(status=421, message="this address serves another host")
        if any(origin not in origins for origin in found.get(b"origin", ())):
            return Denial(status=403, message="web pages of other origins are not served")
        if public:
            return None
        credentials = [*found.get(b"authorization", ())]
        if websocket:
            credentials += [
                _BEARER + offer.removeprefix(CREDENTIAL_SUBPROTOCOL.encode())
                for value in found.get(b"sec-websocket-protocol", ())
                for offer in subprotocols(value)
                if is_token(offer)
            ]
        if len(credentials) != 1 or not hmac.compare_digest(
            credentials[0], _BEARER + self.token.encode()
        ):
            message = (
                "the token is missing or wrong; "
                f"`uncaged-workflow mcp config claude --http {self.port}` prints the path of its file"
            )
            return Denial(status=401, message=message, headers={"WWW-Authenticate": "Bearer"})
        return None


def in_address(host: str) -> str:
    """Return a host as an address has it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def _spellings(scheme: str, host: str) -> set[str]:
    """Return a host as headers may have it: the default port of a scheme may be left out."""
    default = DEFAULT_PORTS[scheme]
    bare = host.removesuffix(default)
    return {host} if _PORT.search(bare) else {bare, bare + default}


def subprotocols(value: bytes) -> list[bytes]:
    """Return the subprotocols that one header of a WebSocket handshake offers."""
    return [offer.strip() for offer in value.split(b",")]


def is_token(subprotocol: bytes) -> bool:
    """Return whether a subprotocol is the token's."""
    return subprotocol.startswith(CREDENTIAL_SUBPROTOCOL.encode())


def token_path(store: Store) -> Path:
    """Return the path of the token of a store's listeners."""
    return store.run / "token"


def token_of(store: Store) -> str:
    """Return the store's token; the first call makes it, once even among concurrent calls.

    Raises:
        DamagedError: the file is a link, belongs to another user, can be read by others, or holds
            no token.
        StorageError: it cannot be made or read.
    """
    path = token_path(store)
    try:
        if not path.exists():
            _make(path)
        return _read(path)
    except OSError as exc:
        raise StorageError(f"cannot use the token {path}: {exc.strerror or exc}") from exc


def _make(path: Path) -> None:
    """Write the token to a temporary file and link it to its name; the first of several writers
    wins.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, secrets.token_urlsafe(TOKEN_BYTES).encode())
        os.fsync(handle)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)


def _read(path: Path) -> str:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise DamagedError(
                f"{path} is not a file that you alone can read; remove it, then start again"
            )
        data = os.read(handle, 1024)
    finally:
        os.close(handle)
    if not _TOKEN.fullmatch(data):
        raise DamagedError(f"{path} holds no token; remove it, then start again")
    return data.decode()
