"""Pairing of the extension: the code that a person types once, and the tokens of paired browsers.

Both sides prove by HMAC over two nonces that they know the code or the token; neither is sent.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from hashlib import sha256
from pathlib import Path

from uncaged_bundles import shapes
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.files import write_atomically
from uncaged_bundles.storage.store import Store

__all__ = ["CODE_LIFE_S", "Pairings", "pairings_path", "proof"]

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE_CHARACTERS = 12
GROUP = 4
CODE_LIFE_S = 600.0
MAX_ATTEMPTS = 5
MAX_CLIENTS = 20


def pairings_path(store: Store) -> Path:
    """Return the file with the tokens of paired browsers; only its owner can read it."""
    return store.root / "browser-pairings.json"


def proof(key: str, *parts: str) -> str:
    """Return the proof that its sender knows *key*."""
    return hmac.new(key.encode(), "\n".join(parts).encode(), sha256).hexdigest()


class Pairings:
    """Paired browsers by client id, and the pairing code that is valid now, if any."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._code: str | None = None
        self._made_s = 0.0
        self._attempts = 0

    def new_code(self) -> str:
        """Return a new code, in groups to be typed; it replaces the one before."""
        self._code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARACTERS))
        self._made_s = time.monotonic()
        self._attempts = 0
        groups = range(0, CODE_CHARACTERS, GROUP)
        return "-".join(self._code[start : start + GROUP] for start in groups)

    def key(self, kind: str, client: str) -> str | None:
        """Return the code or the client's token; None if there is none."""
        if kind == "token":
            return self._tokens().get(client)
        if kind != "code" or self._code is None:
            return None
        if time.monotonic() - self._made_s > CODE_LIFE_S or self._attempts >= MAX_ATTEMPTS:
            self._code = None
            return None
        self._attempts += 1
        return self._code

    def pair(self, client: str) -> str:
        """Use the code up and return the new token of a client; the oldest is dropped if there are
        too many.
        """
        self._code = None
        tokens = {known: token for known, token in self._tokens().items() if known != client}
        kept = list(tokens.items())[-(MAX_CLIENTS - 1) :]
        token = secrets.token_urlsafe(32)
        self._write({**dict(kept), client: token})
        return token

    def forget(self) -> int:
        """Remove the tokens of all clients and return how many there were."""
        count = len(self._tokens())
        self._path.unlink(missing_ok=True)
        return count

    def check(self) -> None:
        """Read the file of pairings.

        Raises:
            DamagedError: it cannot be read; no browser could be paired.
        """
        self._tokens()

    @property
    def clients(self) -> list[str]:
        """Return the paired clients, the newest last."""
        return list(self._tokens())

    def _tokens(self) -> dict[str, str]:
        try:
            found = shapes.mapping(json.loads(self._path.read_bytes()), ("pairings",))
            return {client: shapes.filled(token, (client,)) for client, token in found.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, shapes.ShapeError) as exc:
            raise DamagedError(
                f"{self._path} holds no pairings; remove it, then pair the extension again"
            ) from exc

    def _write(self, tokens: dict[str, str]) -> None:
        write_atomically(self._path, json.dumps(tokens, indent=1).encode())
