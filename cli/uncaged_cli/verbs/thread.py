"""`thread` shows one thread, follows it, or removes it."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from ..display import jsonout
from ..display.follow import ending_of, follow, summary_of
from ..display.portrait import portrait
from ..display.screen import next_step, result
from ..given.arguments import complete_threads, json_option, thread_argument, threads_argument, verbose_option
from ..session import open_engine


class ShowByDefault(click.Group):
    """`thread ID` is `thread show ID`: no id can be one of the verbs, since ids begin with a digit."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [*super().shell_complete(ctx, incomplete), *complete_threads(ctx, None, incomplete)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=ShowByDefault, subcommand_metavar="THREAD | rm THREAD...", no_args_is_help=True)
def command() -> None:
    """Show or follow a thread, or remove it. THREAD is an id, a unique beginning of one, or `latest`."""


@command.command("show")
@thread_argument
@click.option("-f", "--follow", "following", is_flag=True, help="Show the steps as they happen; exit by what it came to.")
@verbose_option
@click.option("--full", is_flag=True, help="Show prompt and answers whole.")
@json_option
def show(thread: str, following: bool, verbose: bool, full: bool, as_json: bool) -> int:
    """Show a thread: what it was asked, its steps, what it came to."""
    engine = open_engine()
    view = engine.thread(thread)
    if following:
        return follow(engine, view.summary.thread_id, as_json=as_json, verbose=verbose)
    if as_json:
        jsonout.document({**summary_of(view), "start": view.start, "records": view.records})
        return 0
    last, full = ending_of(view, engine.store), full or verbose
    worktree = engine.store.work / view.summary.thread_id
    for line in portrait(view, last, full=full, worktree=worktree if worktree.is_dir() else None):
        result(*line)
    for next_command in last.commands:
        if not (full and next_command.endswith(" --full")):  # that is what they look at
            next_step(next_command)
    return 0


@command.command("rm", short_help="Remove threads that do not run.")
@threads_argument
@json_option
def remove(threads: tuple[str, ...], as_json: bool) -> None:
    """Remove threads that do not run, with their worktrees, refs and empty branches."""
    engine = open_engine()
    from uncaged_engine.threads.removal import parents_first

    found = parents_first(engine.store.locate_threads(threads))  # all names first: `latest` moves
    ids = list(dict.fromkeys(thread_id for _, thread_id, _ in found))
    for thread_id in ids:
        engine.remove_thread(thread_id)
        if not as_json:
            result(f"removed {thread_id}")
    if as_json:
        jsonout.document({"removed": ids})
