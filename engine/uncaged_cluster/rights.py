"""Rights of a worker on the tables of a store and of its runner."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_engine.services.stores import StoreRefused

from .session import DatabaseSession

STORE_RIGHTS: Mapping[str, str] = {
    "begun_threads": "SELECT INSERT DELETE",
    "blobs": "SELECT INSERT UPDATE",
    "bundles": "SELECT",
    "documents": "SELECT",
    "requests": "SELECT DELETE",
    "thread_lines": "SELECT INSERT",
    "thread_notes": "SELECT UPDATE",
    "threads": "SELECT UPDATE",
    "workers": "SELECT INSERT UPDATE DELETE",
}
_LACKING = """
SELECT format('%%I.%%I', space, name), string_agg(needed, ', ' ORDER BY place), current_user
FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS rights (space, name, needed, place)
WHERE NOT has_table_privilege(to_regclass(format('%%I.%%I', space, name)), needed)
GROUP BY 1, 3 ORDER BY 1
"""


def require_rights(session: DatabaseSession, others: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse to begin what a worker cannot finish.

    Args:
        others: rights on tables of other schemas than the store's, by schema and table.

    Raises:
        StoreRefused: this user lacks a right; the message has the statement that grants it.
    """
    wanted = [
        (schema, table, right)
        for schema, tables in {session.address.schema: STORE_RIGHTS, **others}.items()
        for table, rights in tables.items()
        for right in rights.split()
    ]
    lacking = session.query(_LACKING, [list(column) for column in zip(*wanted, strict=True)])
    if lacking:
        grants = "; ".join(
            f"GRANT {rights} ON {table} TO {user}" for table, rights, user in lacking
        )
        raise StoreRefused(
            f"{session.address}: this user may not write what a worker writes; let the schema's owner allow it with `{grants}`"
        )
