"""A verb of another distribution: `uncaged-workflow greetings` prints one line."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Print a greeting."""
    click.echo("greetings from outside")
