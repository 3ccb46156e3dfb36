"""HTML by which objects show themselves in a notebook: small, escaped, without script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from .clean import shorten

COLUMNS = 200


def pairs_html(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """Return a table of names and values below a title; empty values are left out."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(shorten(str(value)[: 10 * COLUMNS], COLUMNS))}</td></tr>"
        for name, value in pairs
        if value not in (None, "")
    )
    return f"<table><caption><b>{escape(shorten(title, COLUMNS))}</b></caption>{rows}</table>"
