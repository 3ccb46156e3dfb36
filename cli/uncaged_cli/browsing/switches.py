"""Lists under `browser` in config.yaml whose entries are switched on and off; `browser parts`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from uncaged_browser.effect.parts import PARTS
from uncaged_browser.lookup.resolvers import RESOLVERS
from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_engine.settings.editing import change_setting

from ..display import json_output
from ..display.output import Piece, Styled, table, text_width
from ..display.table import render
from ..inputs.options import json_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import Engine

__all__ = ["show_rows", "switch_parts", "switch_resolvers"]


def switch_command(
    name: str,
    *,
    key: str,
    header: str,
    known: Sequence[str],
    short_help: str,
    help: str,
) -> click.Command:
    """Return a command that lists the entries of a list in config.yaml, and switches one.

    Args:
        key: of the list under `browser`. header: of the column with the names. known: all entries
            that there are, in the order in which they are listed.
    """

    @click.command(name, short_help=short_help, help=help)
    @click.argument("words", nargs=-1, metavar="[list | on NAME | off NAME]")
    @json_option
    def command(words: tuple[str, ...], as_json: bool) -> None:
        engine = open_engine(of_machine=True)
        match words:
            case () | ("list",):
                pass
            case ("on" | "off" as state, entry):
                _switch(engine, key, entry, known, on=state == "on")
            case _:
                raise UsageError(f"write list, on NAME or off NAME, not {' '.join(words)[:80]!r}")
        active = getattr(engine.config.browser, key)
        if as_json:
            json_output.document([{"name": one, "on": one in active} for one in known])
            return
        show_rows((header, "state"), [(one, "on" if one in active else "off") for one in known])

    return command


switch_parts = switch_command(
    "parts",
    key="parts",
    header="part",
    known=PARTS,
    short_help="List the parts of the browser that flows may use, or switch one.",
    help="""List the parts of the browser that flows and sentences may use, or switch one on or off.

    They are browse (flows in the session's own tabs), lookup (pages by name, searches, and
    questions that a model answers), discovery (actions that pages offer, as sentences) and flows
    (web flows in contexts of their own). Your own browser has a switch of its own, `browser
    external`.
    """,
)
switch_resolvers = switch_command(
    "resolver",
    key="resolvers",
    header="resolver",
    known=RESOLVERS,
    short_help="List the resolvers of names, or switch one.",
    help="""List the ways in which `browser open NAME` finds a page, or switch one on or off.

    They are tried in this order: search (the first result of the default search provider that
    shares a word with the name), keyword (the addresses under keywords in config.yaml),
    encyclopedia (an article of that name), history (pages that sessions opened). The history is
    kept only while that one is on.
    """,
)


def _switch(engine: Engine, key: str, name: str, known: Sequence[str], *, on: bool) -> None:
    """Switch one entry of a list under `browser` in config.yaml; the others stay as they are.

    Raises:
        NotFoundError: there is no such entry.
    """
    if name not in known:
        raise NotFoundError(f"there is no {name[:80]!r}; there are: {', '.join(known)}")

    def entries(config: Any) -> list[str]:
        active = getattr(config.browser, key)
        return [one for one in known if (on if one == name else one in active)]

    change_setting(engine.store.config_path, key, entries, section="browser")


def show_rows(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is coloured."""
    shown: list[list[Piece]] = [[Styled(row[0], "cyan"), *row[1:]] for row in rows]
    table(render(headers, shown, width=text_width(sys.stdout)))
