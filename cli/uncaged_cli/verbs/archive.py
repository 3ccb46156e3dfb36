"""The verb `archive`: compresses the journals of ended threads. Every other verb reads them as
before.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.counted import shown_progress
from ..display.durations import parse_age
from ..display.output import Styled, next_step, note, result
from ..display.sizes import spell_bytes
from ..inputs.completion import complete_flows, complete_threads
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_engine.threads.housekeeping import Archived


@click.command()
@click.argument("threads", metavar="[THREAD...]", nargs=-1, shell_complete=complete_threads)
@click.option(
    "--older-than",
    metavar="AGE",
    help="Archive every thread that ended longer ago than this, such as 30d.",
)
@click.option(
    "--flow",
    metavar="NAME",
    shell_complete=complete_flows,
    help="With --older-than: only threads of this flow.",
)
@click.option(
    "--to",
    "target",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Of a shared store: move the threads into the store in this directory, which is made if it is missing.",
)
@shared_option
@json_option
def command(
    *,
    threads: tuple[str, ...],
    older_than: str | None,
    flow: str | None,
    target: Path | None,
    as_json: bool,
) -> int:
    """Compress the journals of the named ended threads, or with --older-than of all that are old
    enough.

    Threads of a shared store are moved into a directory, with their bundles, blobs and the grants
    of the flows. UNCAGED_WORKFLOW_HOME=DIR reads them there.

    \b
    Examples:
      uncaged-workflow archive --older-than 30d
      uncaged-workflow archive --older-than 90d --to ./2025 --store postgresql://db.example/team
    """
    if bool(threads) == (older_than is not None):
        raise UsageError(
            "name threads, or an age with --older-than (0d archives all ended threads)"
        )
    if threads and flow is not None:
        raise UsageError("--flow goes with --older-than")
    older_than_ms = parse_age(older_than) if older_than else None
    engine = open_engine()
    with shown_progress() as progress:
        archived = engine.archive(
            threads, older_than_ms=older_than_ms, flow=flow, to=target, progress=progress
        )
    show_archived(archived, threads, target, as_json=as_json)
    return 1 if archived.problems else 0


def show_archived(
    archived: Archived, threads: tuple[str, ...], target: Path | None, *, as_json: bool
) -> None:
    if as_json:
        kept = [str(path) for path in archived.kept_aside]
        json_output.document(
            {
                "threadIds": list(archived.threads),
                "savedBytes": archived.saved_bytes,
                "keptAside": kept,
                "kept": list(archived.kept),
                "problems": list(archived.problems),
            }
        )
        return
    for path in archived.kept_aside:
        note(f"a journal had a damaged tail, which was moved to {path}")
    if threads and not archived.threads:
        result("nothing to do: already archived")
        return
    for problem in archived.problems:
        note(Styled("problem: ", "red"), problem)
    if archived.kept:
        count = len(archived.kept)
        note(f"kept {count} thread{'' if count == 1 else 's'} whose parent can still continue")
    if target is not None:
        moved = f"moved {len(archived.threads)} thread{'' if len(archived.threads) == 1 else 's'} to {target}"
        result(f"{moved}, {spell_bytes(archived.saved_bytes)} of journals")
        if archived.threads:
            next_step(f"UNCAGED_WORKFLOW_HOME={shlex.quote(str(target))} uncaged-workflow threads")
        return
    result(
        f"archived {len(archived.threads)} thread{'' if len(archived.threads) == 1 else 's'}, {spell_bytes(archived.saved_bytes)} saved"
    )
