"""Click group that imports the module of a verb only when the verb is invoked."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem
from uncaged_bundles.errors import EnvironmentLacks, UncagedError
from uncaged_engine import plugins

from .catalog import SECTIONS, VERBS, is_installed, module_of, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def external_verbs() -> Mapping[str, EntryPoint]:
    """Return the verbs of other distributions by name; they cannot replace a shipped verb."""
    return {
        name: point for name, point in plugins.points_of(plugins.VERBS).items() if name not in VERBS
    }


def is_verb(name: str) -> bool:
    """Return whether there is a verb of this name, whose package is installed."""
    return is_installed(name) if name in VERBS else name in external_verbs()


def all_verbs() -> list[str]:
    """Return the names of all verbs whose packages are installed."""
    return [*filter(is_installed, VERBS), *external_verbs()]


def _command_of(name: str) -> click.Command | None:
    point = external_verbs().get(name)
    if point is None:
        return None
    command = plugins.loaded(point)
    if not isinstance(command, click.Command):
        raise EnvironmentLacks(
            f"the verb {name!r} of {_distribution_of(point)} is not a click command: {point.value}",
            remedy="update or uninstall that distribution",
        )
    return command


def _distribution_of(point: EntryPoint) -> str:
    return "an unknown distribution" if point.dist is None else point.dist.name


class LazyGroup(click.Group):
    """The group of all verbs in the catalogue."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is click's
        return all_verbs()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  the signature is click's
        if cmd_name not in VERBS:
            return _command_of(cmd_name)
        if not is_installed(cmd_name):
            return None
        command: click.Command = importlib.import_module(module_of(cmd_name)).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and not ctx.resilient_parsing and not is_verb(args[0]):
            raise click.UsageError(
                f"no verb {args[0]!r}{nearest(args[0], self.list_commands(ctx))}", ctx
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except UncagedError as problem:
            from .inputs.stores import in_same_store

            problem.args = (in_same_store(str(problem), ctx), *problem.args[1:])
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  the signature is click's
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name, line) for name, line in verbs.items() if is_installed(name)]
                )
        if more := external_verbs():
            with formatter.section("From other distributions"):
                formatter.write_dl(
                    [
                        (name, f"{found.value} of {_distribution_of(found)}")
                        for name, found in more.items()
                    ]
                )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        verbs = [
            CompletionItem(name, help=line)
            for name, line in VERBS.items()
            if name.startswith(incomplete) and is_installed(name)
        ]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)
