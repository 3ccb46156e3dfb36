"""Groups of verbs in which one subcommand may be left out."""

from __future__ import annotations

from typing import Any

import click


class DefaultGroup(click.Group):
    """Group whose subcommand *default* runs if none is named."""

    def __init__(self, *args: Any, default: str, **more: Any) -> None:
        super().__init__(*args, **{"no_args_is_help": False, **more})
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        if is_option or not (args or self.no_args_is_help):
            args = [self.default, *args]
        return super().parse_args(ctx, args)
