"""Bundles and blobs as rows: contents by their hash, hashed again at each load (`BundleStorage`,
`BlobStorage`).
"""

from __future__ import annotations

from collections.abc import Iterator

from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError
from uncaged_bundles.ids import BundleHash, bundle_hash, parse_bundle_hash
from uncaged_engine.services.stores import blob_hash

from .problems import parsed
from .session import DatabaseSession

MAX_CONTENT_BYTES = 256 << 20
"""PostgreSQL cannot send a row of 1 GiB; reading one of this size takes several times its size."""
NAMES_AT_ONCE = 10_000
_PUT_BLOB = """
INSERT INTO blobs (name, content) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET put_at = now(),
    content = CASE WHEN blobs.content = excluded.content THEN blobs.content ELSE excluded.content END
WHERE blobs.content <> excluded.content OR blobs.put_at < now() - interval '1 hour'
"""


class BundleRows:
    """The bundles of a schema."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session

    def put(self, source: bytes) -> BundleHash:
        require_size("the bundle", source)
        hash = bundle_hash(source)
        if not self._session.query(
            "INSERT INTO bundles (hash, source) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING 1",
            [hash, source],
        ):
            [(same,)] = self._session.query(
                "SELECT source = %s FROM bundles WHERE hash = %s", [source, hash]
            )
            if not same:
                raise DamagedError(
                    f"{self._session.address} holds other bytes than the bundle that is to be stored as {hash}; remove that row of bundles"
                )
        return hash

    def get(self, hash: BundleHash) -> bytes:
        rows = self._session.query(
            "SELECT CASE WHEN octet_length(source) <= %s THEN source END FROM bundles WHERE hash = %s",
            [MAX_CONTENT_BYTES, parse_bundle_hash(hash)],
        )
        if not rows:
            raise NotFoundError(f"no bundle {hash} in {self._session.address}")
        source: bytes | None = rows[0][0]
        if source is None or bundle_hash(source) != hash:
            raise DamagedError(
                f"bundle {hash} in {self._session.address}: its bytes have another hash, the row was changed; put the original back"
            )
        return source

    def hashes(self) -> list[BundleHash]:
        rows = self._session.query("SELECT hash FROM bundles ORDER BY hash")
        return [parsed(parse_bundle_hash, hash, "bundles") for (hash,) in rows]


class BlobRows:
    """The blobs of a schema."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session

    def put(self, data: bytes) -> str:
        require_size("the blob", data)
        name = blob_hash(data)
        # a damaged row is repaired, since the name says which bytes it must have; an old one is
        # young again, so that no removal takes it before the line that names it is there
        self._session.query(
            _PUT_BLOB,
            [name, data],
        )
        return name

    def get(self, name: str) -> bytes:
        if not _is_blob_name(name):
            raise DamagedError(f"{name[:100]!r} is no hash of a blob")
        rows = self._session.query(
            "SELECT CASE WHEN octet_length(content) <= %s THEN content END FROM blobs WHERE name = %s",
            [MAX_CONTENT_BYTES, name],
        )
        if not rows:
            raise DamagedError(f"blob {name} is missing from {self._session.address}")
        data: bytes | None = rows[0][0]
        if data is None or blob_hash(data) != name:
            raise DamagedError(
                f"blob {name} in {self._session.address} does not hold the bytes that were hashed"
            )
        return data

    def names(self) -> Iterator[str]:
        last = ""
        while rows := self._session.query(
            "SELECT name FROM blobs WHERE name > %s ORDER BY name LIMIT %s", [last, NAMES_AT_ONCE]
        ):
            yield from (name for (name,) in rows)
            last = rows[-1][0]


def require_size(subject: str, data: bytes) -> None:
    """Refuse bytes that a row cannot hold."""
    if len(data) > MAX_CONTENT_BYTES:
        raise RefusedError(
            f"{subject} has {len(data)} bytes; a store in PostgreSQL takes {MAX_CONTENT_BYTES} at most"
        )


def _is_blob_name(name: str) -> bool:
    return len(name) == len(blob_hash(b"")) and set(name) <= set("0123456789abcdef")
