"""Addresses of stores in PostgreSQL: libpq's URLs, with the schema as one more parameter.

A password never shows: neither in messages, nor in what `__str__` returns.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass

SCHEME = "postgresql"
_SCHEMES = (SCHEME, "postgres")
DEFAULT_SCHEMA = "uncaged"
EXAMPLE = "postgresql://USER@HOST:5432/DATABASE?schema=uncaged"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::[0-9]*)?")
_RESERVED = re.compile(r"pg_.*|information_schema|public")
_SECRET_PARAMETERS = frozenset(("password", "sslpassword"))
_NEXT_STEP = f"it has the form {EXAMPLE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAddress:
    """A parsed address. conninfo: what libpq connects to, with the password if the address has one.
    shown: the address without it, and with the schema.
    """

    conninfo: str
    schema: str
    shown: str

    def __str__(self) -> str:
        return self.shown


def parse_address(text: str, *, is_visible: bool) -> ClusterAddress:
    """Parse the address of a store.

    Args:
        is_visible: other users of the machine can read the text: refuse a password in it.
    Raises:
        UsageError: it is no such URL, has a password that others can read, or names no schema that
            a store can have.
    """
    try:
        parts = urlsplit(text)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:  # its text may have a part of the password
        raise UsageError(f"the store's address cannot be read; {_NEXT_STEP}") from None
    if parts.scheme not in _SCHEMES or parts.fragment:
        raise UsageError(f"the store's address is no {SCHEME} URL; {_NEXT_STEP}")
    user, at, place = parts.netloc.rpartition("@")
    if text.count("@") > len(at):  # what follows it, or comes before, may be of a password
        raise UsageError(
            f"the store's address has an @ that is not between user and host, or a password with one of /?#@;"
            f" percent-encode it (@ is %40); {_NEXT_STEP}"
        )
    name, colon, _ = user.partition(":")
    open_pairs = [(key, value) for key, value in pairs if key not in _SECRET_PARAMETERS]
    if is_visible and (colon or len(open_pairs) < len(pairs)):
        raise UsageError(
            "an address on the command line must have no password, which other users of this machine could read;"
            " put it into a file that PGPASSFILE names, or into the variable PGPASSWORD"
        )
    schema = _schema([value for key, value in pairs if key == "schema"])
    kept = [(key, value) for key, value in pairs if key != "schema"]
    libpq_pairs = [pair for pair in open_pairs if pair[0] != "schema"]
    if not all(map(_HOST.fullmatch, place.split(","))):
        raise UsageError(f"{place[:200]!r} is no host and port; {_NEXT_STEP}")
    without = _url(f"{name}{at}{place}", parts.path, libpq_pairs)
    _check(without)
    whole = _url(parts.netloc, parts.path, kept)
    if whole != without:
        _check(whole, shown=without)
    shown = _url(f"{name}{at}{place}", parts.path, [*libpq_pairs, ("schema", schema)])
    return ClusterAddress(conninfo=whole, schema=schema, shown=shown)


def _schema(found: list[str]) -> str:
    schema = found[0] if found else DEFAULT_SCHEMA
    if len(found) > 1 or not _SCHEMA.fullmatch(schema) or _RESERVED.fullmatch(schema):
        raise UsageError(
            f"a store has one schema of its own, named with at most 63 of a–z, 0–9 and _, not public and not pg_…;"
            f" not {', '.join(found)[:200]!r}, but for example {DEFAULT_SCHEMA}"
        )
    return schema


def _url(netloc: str, path: str, pairs: list[tuple[str, str]]) -> str:
    query = urlencode(pairs, quote_via=quote, safe="/,:")
    return f"{SCHEME}://{netloc}{path}{'?' if query else ''}{query}"


def _check(url: str, *, shown: str = "") -> None:
    """Let libpq read a URL. shown: the URL without its password, which alone is then shown."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(url)
    except psycopg.Error as exc:
        reason = f"the password in {shown} must be percent-encoded" if shown else str(exc).strip()
        cause = None if shown else exc  # its text may have the password
        raise UsageError(f"the store's address cannot be read: {reason}; {_NEXT_STEP}") from cause
