"""Registry and documents as rows with versions (`RegistryStorage`, `DocumentStorage`)."""

from __future__ import annotations

from uncaged_bundles.errors import DamagedError
from uncaged_engine.services.stores import ChangedMeanwhile, VersionedBytes, parse_document

from .contents import MAX_CONTENT_BYTES, require_size
from .problems import parsed
from .session import DatabaseSession

REGISTRY = "workflow.yaml"
"""The name of the registry's row; no document has it."""


class RegistryRow:
    """The registry of a schema."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session

    def read(self) -> VersionedBytes | None:
        return _read(self._session, REGISTRY)

    def version(self) -> str | None:
        rows = self._session.query("SELECT version FROM documents WHERE name = %s", [REGISTRY])
        return str(rows[0][0]) if rows else None

    def replace(self, data: bytes, *, version: str | None) -> str:
        return _replace(self._session, REGISTRY, data, version)


class DocumentRows:
    """The documents of a schema."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session

    def names(self) -> list[str]:
        rows = self._session.query(
            "SELECT name FROM documents WHERE name <> %s ORDER BY name", [REGISTRY]
        )
        return [parsed(parse_document, name, "documents") for (name,) in rows]

    def read(self, name: str) -> VersionedBytes | None:
        return _read(self._session, parse_document(name))

    def replace(self, name: str, data: bytes, *, version: str | None) -> str:
        return _replace(self._session, parse_document(name), data, version)

    def remove(self, name: str, *, version: str) -> None:
        if not self._session.query(
            "DELETE FROM documents WHERE name = %s AND version::text = %s RETURNING 1",
            [parse_document(name), version],
        ):
            raise _changed(self._session, name)


def _read(session: DatabaseSession, name: str) -> VersionedBytes | None:
    rows = session.query(
        "SELECT CASE WHEN octet_length(content) <= %s THEN content END, version FROM documents WHERE name = %s",
        [MAX_CONTENT_BYTES, name],
    )
    if not rows:
        return None
    data, version = rows[0]
    if data is None:
        raise DamagedError(f"{name} in {session.address} is larger than {MAX_CONTENT_BYTES} bytes")
    return VersionedBytes(data=data, version=str(version))


def _replace(session: DatabaseSession, name: str, data: bytes, version: str | None) -> str:
    require_size(name, data)
    if version is None:
        rows = session.query(
            "INSERT INTO documents (name, content) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING version",
            [name, data],
        )
    else:
        rows = session.query(
            "UPDATE documents SET content = %s, version = nextval('document_versions')"
            " WHERE name = %s AND version::text = %s RETURNING version",
            [data, name, version],
        )
    if not rows:
        raise _changed(session, name)
    return str(rows[0][0])


def _changed(session: DatabaseSession, name: str) -> ChangedMeanwhile:
    return ChangedMeanwhile(f"{name} in {session.address} was changed meanwhile; read it again")
