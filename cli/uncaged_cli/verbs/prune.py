"""The verb `prune`: removes old ended threads and everything that belongs to them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import UncagedError

from ..display import json_output
from ..display.counted import shown_progress
from ..display.durations import parse_age
from ..display.output import next_step, result
from ..display.sizes import spell_bytes
from ..inputs.completion import complete_flows
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_engine.threads.housekeeping import Pruned


@click.command()
@click.option(
    "--older-than",
    required=True,
    metavar="AGE",
    help="Remove threads that ended longer ago than this, such as 30d.",
)
@click.option("--flow", metavar="NAME", shell_complete=complete_flows, help="Only of this flow.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@shared_option
@json_option
def command(*, older_than: str, flow: str | None, dry_run: bool, as_json: bool) -> None:
    """Remove old ended threads with their worktrees, refs, empty branches and unused blobs.

    A shared store keeps a marker of each, so that no copy brings it back. Its workers go on
    meanwhile.
    """
    older_than_ms = parse_age(older_than)
    engine = open_engine()
    with shown_progress() as progress:
        pruned = engine.prune(
            older_than_ms=older_than_ms, flow=flow, dry_run=dry_run, progress=progress
        )
    if as_json:
        document = {
            "threadIds": list(pruned.threads),
            "freedBytes": pruned.freed_bytes,
            "dryRun": dry_run,
        }
        kept = {"kept": list(pruned.kept), "pinned": list(pruned.pinned)}
        json_output.document(document | kept | {"problems": list(pruned.problems)})
    else:
        show_pruned(pruned, older_than, flow, dry_run=dry_run)
    if pruned.problems:
        raise UncagedError("\n".join(pruned.problems))


def show_pruned(pruned: Pruned, older_than: str, flow: str | None, *, dry_run: bool) -> None:
    for thread_id in sorted(pruned.threads, reverse=True):
        result(thread_id)
    verb = "would remove" if dry_run else "removed"
    count = len(pruned.threads)
    result(f"{verb} {count} thread{'' if count == 1 else 's'}, {spell_bytes(pruned.freed_bytes)}")
    if pruned.kept:
        count = len(pruned.kept)
        result(
            f"kept {count} thread{'' if count == 1 else 's'} whose parent can still continue; `thread rm` of the parent releases them"
        )
    if pruned.pinned:
        count = len(pruned.pinned)
        result(f"kept {count} pinned thread{'' if count == 1 else 's'}")
    if dry_run and pruned.threads:
        of_flow = "" if flow is None else f" --flow {shlex.quote(flow)}"
        next_step(f"uncaged-workflow prune --older-than {shlex.quote(older_than)}{of_flow}")
