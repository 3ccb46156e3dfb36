"""The verb `verify`: replays a thread's bundle over its journal and reports the first
difference.
"""

from __future__ import annotations

import click
from uncaged_bundles.errors import NotFoundError

from ..display import json_output
from ..display.output import Styled, note, result
from ..inputs.completion import HEAD, complete_versions
from ..inputs.options import json_option, thread_argument
from ..inputs.stores import shared_option
from ..replay_check import show_check
from ..runtime import open_engine

EXIT_NOT_PROVED = 1


@click.command()
@thread_argument
@click.option(
    "--on",
    metavar="HASH|NAME|head",
    shell_complete=complete_versions,
    help="THREAD names a flow: replay its past threads against this version.",
)
@shared_option
@json_option
def command(*, thread: str, on: str | None, as_json: bool) -> int:
    """Replay the bundle of THREAD over its journal, alone in a fresh sandbox, and compare every
    effect.
    """
    engine = open_engine()
    if on is not None:
        return show_check(
            engine, thread, engine.bundle(thread if on == HEAD else on).source, as_json=as_json
        )
    try:
        thread_id = engine.store.locate_thread(thread)[1]
    except NotFoundError as problem:
        if engine.registry.flow(thread) is None:
            raise
        advice = f"'uncaged-workflow verify {thread} --on {HEAD}' replays its past threads"
        raise NotFoundError(f"{thread!r} is a flow, not a thread; {advice}") from problem
    verdict = engine.verify(thread_id)
    if as_json:
        json_output.document(
            {
                "threadId": thread_id,
                "ok": verdict.ok,
                "steps": verdict.steps,
                "sandbox": verdict.mechanism,
                "message": verdict.message,
                "keptAside": str(verdict.kept_aside) if verdict.kept_aside else None,
            }
        )
    else:
        if verdict.kept_aside is not None:
            note(f"the journal had a damaged tail, which was moved to {verdict.kept_aside}")
        word = Styled("proved", "green") if verdict.ok else Styled("not proved", "red")
        result(
            f"{thread_id}: ",
            word,
            f", sandbox {verdict.mechanism}{': ' if verdict.message else ''}{verdict.message}",
        )
    return 0 if verdict.ok else EXIT_NOT_PROVED
