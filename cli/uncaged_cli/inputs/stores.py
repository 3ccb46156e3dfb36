"""Option and completion for addresses of stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Callable

    from .options import Decorated

SCHEMES = ("postgresql://",)


def complete_addresses(
    context: click.Context, parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete a directory or a scheme."""
    schemes = complete_shared(context, parameter, incomplete)
    return [CompletionItem(incomplete, type="dir"), *schemes]


def complete_shared(
    _context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete the scheme of a shared store."""
    return [CompletionItem(scheme) for scheme in SCHEMES if scheme.startswith(incomplete)]


def store_option(*, required: bool) -> Callable[[Decorated], Decorated]:
    """Return the option ``--store``, the keyword ``address``."""
    return click.option(
        "--store",
        "address",
        metavar="ADDRESS",
        required=required,
        shell_complete=complete_shared,
        help="A shared store: postgresql://HOST/DATABASE?schema=NAME.",
    )
