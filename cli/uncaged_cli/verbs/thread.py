"""The verb `thread`: shows a thread, follows it, shows its file changes, merges its branch, pins or
removes it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem
from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_engine.threads.ending import ending_of

from ..display import json_output
from ..display.changes import SHORT_COMMIT, show_changes
from ..display.follow import follow, summary_of
from ..display.output import next_step, note, result
from ..display.sizes import spell_bytes
from ..display.thread_details import thread_lines
from ..inputs.completion import complete_threads
from ..inputs.consent import confirmed
from ..inputs.groups import DefaultGroup
from ..inputs.options import json_option, thread_argument, threads_argument, verbose_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import Engine, ThreadView


class ShowByDefault(DefaultGroup):
    """Group that treats `thread ID` as `thread show ID`; ids begin with a digit and verbs do
    not.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            args = [self.default, *args]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [*super().shell_complete(ctx, incomplete), *complete_threads(ctx, None, incomplete)]


@click.group(
    cls=ShowByDefault,
    default="show",
    subcommand_metavar="THREAD | diff THREAD [N] | fetch THREAD | merge THREAD | pin [THREAD...] | rm THREAD...",
    no_args_is_help=True,
)
def command() -> None:
    """Show or follow a thread, show its file changes, fetch or merge its branch, pin or remove it.

    THREAD is an id, a unique prefix of one, or `latest`. `thread THREAD` is `thread show THREAD`,
    with the same options.
    """


@command.command("show")
@thread_argument
@click.option(
    "-f",
    "--follow",
    "following",
    is_flag=True,
    help="Follow the steps; the exit code is the result of the thread.",
)
@verbose_option
@click.option("--full", is_flag=True, help="Show the whole prompt and all details of the steps.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a page that shows the thread with all its steps and pictures to FILE, or to standard output if it is -.",
)
@click.option("--trace", is_flag=True, help="Show the tool calls of the agents instead.")
@shared_option
@json_option
def show(
    *,
    thread: str,
    following: bool,
    verbose: bool,
    full: bool,
    page: Path | None,
    trace: bool,
    as_json: bool,
) -> int:
    """Show a thread: its prompt, its steps and its result."""
    if page is not None and (following or as_json):
        raise UsageError("--html is without --follow and --json")
    if trace and (following or page is not None):
        raise UsageError("--trace is without --follow and --html")
    engine = open_engine()
    if page is not None:
        write_page(engine, thread, page)
        return 0
    view = engine.thread(thread)
    if following:
        return follow(engine, view.summary.thread_id, as_json=as_json, verbose=verbose)
    if trace:
        show_traces(engine, view, full=full or verbose, as_json=as_json)
        return 0
    if as_json:
        json_output.document({**summary_of(view), "start": view.start, "records": view.records})
        return 0
    last, full = ending_of(view, engine.store, Path.cwd()), full or verbose
    if last.branch is not None and last.branch == (view.start.get("workspace") or {}).get("branch"):
        from uncaged_agents.changes import is_merged

        last = ending_of(
            view, engine.store, Path.cwd(), is_merged=is_merged(engine.store, view, os.environ)
        )
    worktree = engine.store.work / view.summary.thread_id
    for line in thread_lines(
        view, last, full=full, worktree=worktree if worktree.is_dir() else None
    ):
        result(*line)
    for next_command in last.commands:
        if not (full and next_command.endswith(" --full")):  # already shown
            next_step(next_command)
    return 0


def write_page(engine: Engine, thread: str, file: Path) -> None:
    """Write the page that shows a thread. file: ``-`` is standard output."""
    from uncaged_bundles.storage.files import write_atomically
    from uncaged_engine.services.secrets import redact
    from uncaged_serve.still import still_page

    if file.is_dir():
        raise UsageError(f"{str(file)!r} is a directory; --html must name a file")
    known = known_secrets(engine)
    page = still_page(
        engine,
        engine.store.locate_thread(thread),
        environment=os.environ,
        redact=lambda value: redact(value, known),
    )
    data = page.text.encode()
    written = f"{spell_bytes(len(data))}, {page.pictures} pictures"
    if str(file) == "-":
        sys.stdout.buffer.write(data)
        note(written)
    else:
        write_atomically(file.absolute(), data)
        result(f"{file}: {written}")
    if page.note:
        note(page.note)


def known_secrets(engine: Engine) -> dict[str, str]:
    """Return the names of the configured secrets by value; those of a keyring are not asked for."""
    from uncaged_engine.services.secrets import secret_value

    found = {}
    for name, source in engine.config.secrets.items():
        with suppress(EnvironmentLacks):
            if source.keyring is None:
                found[secret_value(name, engine.config, os.environ)] = name
    return found


def show_traces(engine: Engine, view: ThreadView, *, full: bool, as_json: bool) -> None:
    """Print the tool calls of the thread's agents."""
    from uncaged_engine.threads.step_traces import traces_of

    from ..display.trace_lines import trace_lines

    traces = traces_of(engine.store, view.records)
    if as_json:
        documents = [trace.document() for trace in traces]
        fields = {**summary_of(view), "start": view.start, "records": view.records}
        json_output.document({**fields, "traces": documents})
        return
    for line in trace_lines(traces, full=full):
        result(*line)


@command.command("diff", short_help="Show the file changes of a step.")
@thread_argument
@click.argument("step", type=click.IntRange(min=1), required=False, metavar="[N]")
@shared_option
@json_option
def diff(thread: str, step: int | None, as_json: bool) -> None:
    """Show the file changes of step N of a thread; without N, of the whole thread."""
    from uncaged_agents.changes import changes_of

    engine = open_engine()
    found = changes_of(engine.store, engine.thread(thread), step, os.environ)
    if as_json:
        json_output.document(found.document())
        return
    show_changes(found)


@command.command("fetch", short_help="Bring a thread's branch from a shared store.")
@thread_argument
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A checkout that gets the branch, instead of the one in which the thread was started.",
)
@shared_option
@json_option
def fetch(thread: str, workspace: Path | None, as_json: bool) -> None:
    """Make or move the branch of a thread of a shared store in a repository on this machine, as its
    last finished step left it.

    No other branch and no file changes there. A branch that a person moved is left as it is.
    """
    from uncaged_agents.fetching import fetch_branch

    from ..display.fetched import fetched_line

    engine = open_engine()
    found = fetch_branch(engine.store, engine.thread(thread), workspace, os.environ)
    if as_json:
        fields = {"branch": found.branch, "commit": found.commit, "changed": found.changed}
        json_output.document({"repository": str(found.repository), **fields})
        return
    result(fetched_line(found))


@command.command("merge", short_help="Merge a thread's branch into the checkout.")
@thread_argument
@click.option("--yes", is_flag=True, help="Merge without asking.")
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Of a shared store: another checkout, instead of the one in which the thread was started.",
)
@shared_option
@json_option
def merge(thread: str, yes: bool, workspace: Path | None, as_json: bool) -> None:
    """Show the changes on the branch of a thread, ask, and merge them into the checkout that the
    thread started from. The branch of a thread of a shared store is fetched first.

    A merge that git refuses, for example because of a conflict, is undone.
    """
    from uncaged_agents import changes

    engine = open_engine()
    view = engine.thread(thread)
    branch = changes.branch_in_checkout(engine.store, view, workspace, os.environ)
    found = changes.branch_changes(branch)
    if not as_json:
        show_changes(found)
    confirmed(f"merge {found.after[:SHORT_COMMIT]}", yes=yes)
    merged = changes.merge(branch, os.environ)
    if as_json:
        fields = {
            "branch": merged.branch,
            "into": merged.into,
            "commit": merged.commit,
            "changed": merged.changed,
        }
        json_output.document({**found.document(), **fields})
    elif merged.changed:
        result(f"merged {merged.branch} into {merged.into}: {merged.commit[:SHORT_COMMIT]}")
    else:
        result(f"{merged.into} already contains {merged.branch}; nothing was changed")
        if found.after == (view.start.get("workspace") or {}).get("base"):
            note("the thread made no commit; show its file changes with:")
            next_step(f"uncaged-workflow thread diff {view.summary.thread_id}")


@command.command("rm", short_help="Remove threads that are not running.")
@threads_argument
@shared_option
@json_option
def remove(threads: tuple[str, ...], as_json: bool) -> None:
    """Remove threads that are not running, with their worktrees, refs and empty branches."""
    ids = []
    for thread_id in open_engine().remove_threads(threads):
        ids.append(thread_id)
        if not as_json:
            result(f"removed {thread_id}")
    if as_json:
        json_output.document({"threadIds": ids})


@command.command("pin", short_help="Keep threads from `prune`, or list those that are kept.")
@click.argument("threads", nargs=-1, metavar="[THREAD...]", shell_complete=complete_threads)
@click.option("--off", is_flag=True, help="Do not keep them any longer.")
@shared_option
@json_option
def pin(threads: tuple[str, ...], *, off: bool, as_json: bool) -> None:
    """Keep threads from `prune` and `thread rm`, as tests of their flow for `regress`; without
    THREAD, list the pinned ones.
    """
    engine = open_engine()
    if off and not threads:
        raise UsageError("--off needs the threads that are no longer kept")
    for text in threads:
        thread_id = engine.set_pinned(text, pinned=not off)
        if not as_json:
            result(f"{thread_id} is no longer pinned" if off else f"pinned {thread_id}")
    if as_json:
        json_output.document({"pinned": engine.pinned()})
    elif not threads:
        for thread_id in engine.pinned():
            result(thread_id)
