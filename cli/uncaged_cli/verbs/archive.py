"""The verb `archive`: compresses the journals of ended threads. Every other verb reads them as
before.
"""

from __future__ import annotations

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.durations import parse_age
from ..display.output import note, result
from ..display.sizes import spell_bytes
from ..inputs.completion import complete_threads
from ..inputs.options import json_option
from ..runtime import open_engine


@click.command()
@click.argument("threads", metavar="[THREAD...]", nargs=-1, shell_complete=complete_threads)
@click.option(
    "--older-than",
    metavar="AGE",
    help="Archive every thread that ended longer ago than this, such as 30d.",
)
@json_option
def command(threads: tuple[str, ...], older_than: str | None, as_json: bool) -> None:
    """Compress the journals of the named ended threads, or with --older-than of all that are old
    enough.
    """
    if bool(threads) == (older_than is not None):
        raise UsageError(
            "name threads, or an age with --older-than (0d archives all ended threads)"
        )
    older_than_ms = parse_age(older_than) if older_than else None
    from uncaged_engine.threads.housekeeping import archive_threads

    archived = archive_threads(open_engine(), threads, older_than_ms=older_than_ms)
    if as_json:
        kept = [str(path) for path in archived.kept_aside]
        json_output.document(
            {
                "threadIds": list(archived.threads),
                "savedBytes": archived.saved_bytes,
                "keptAside": kept,
            }
        )
        return
    for path in archived.kept_aside:
        note(f"a journal had a damaged tail, which was moved to {path}")
    if threads and not archived.threads:
        result("nothing to do: already archived")
        return
    result(
        f"archived {len(archived.threads)} thread{'' if len(archived.threads) == 1 else 's'}, {spell_bytes(archived.saved_bytes)} saved"
    )
