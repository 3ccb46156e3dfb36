"""The verb `regress`: replays all past threads of a flow with its current version, for one's own
CI.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from uncaged_bundles.clean import shorten

from ..display import json_output
from ..display.output import Piece, Styled, note, result
from ..inputs.completion import complete_flows
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_engine.threads.replay_groups import ReplayGroup

EXIT_DIFFERENT = 3
SHOWN_COLUMNS = 200


@click.command()
@click.argument("flow", shell_complete=complete_flows)
@shared_option
@json_option
def command(*, flow: str, as_json: bool) -> int:
    """Replay every stored thread of FLOW with its current version, and print one line for each
    group of threads that ends alike.

    Nothing is performed. The exit code is 3 if a thread differs; one that failed and succeeds now
    is a group of its own, and no difference. `thread pin` keeps a thread from `prune`, as such a
    test. `verify FLOW --on VERSION` does it for another version, thread by thread.
    """
    from uncaged_engine.threads.replay_groups import group_checks

    engine = open_engine()
    bundle = engine.bundle(flow)
    groups = group_checks(engine.check(flow, bundle))
    identical = sum(len(one.checks) for one in groups if one.newest.identical)
    fixed = sum(len(one.checks) for one in groups if one.newest.succeeds_now)
    total = sum(len(one.checks) for one in groups)
    different = total - identical - fixed
    if as_json:
        documents = [group_document(one) for one in groups]
        json_output.document(
            {
                "flow": flow,
                "hash": bundle.hash,
                "different": different,
                "succeedNow": fixed,
                "groups": documents,
            }
        )
        return EXIT_DIFFERENT if different else 0
    for one in groups:
        result(*group_line(one))
    if not total:
        note(f"no past threads of {flow} to replay with {bundle.hash}; nothing was checked")
        return 0
    threads = f"{total} past thread{'' if total == 1 else 's'} of {flow} with {bundle.hash}"
    counts = f"{identical} identical, {different} different"
    note(f"{threads}: {counts}{f', {fixed} failed before and succeed now' if fixed else ''}")
    return EXIT_DIFFERENT if different else 0


def group_document(group: ReplayGroup) -> dict[str, object]:
    """Return a group as JSON data; recorded, yielded and message are those of its first thread."""
    newest = group.newest
    return {
        "threadIds": [one.thread_id for one in group.checks],
        "identical": newest.identical,
        "succeedsNow": newest.succeeds_now,
        "step": newest.step,
        "places": list(group.places),
        "recorded": newest.recorded,
        "yielded": newest.yielded,
        "message": newest.message,
    }


def group_line(group: ReplayGroup) -> Iterator[Piece]:
    """Yield the line of a group."""
    newest, count = group.newest, len(group.checks)
    yield f"{count} thread{'' if count == 1 else 's'} "
    if newest.identical:
        yield Styled("identical", "green")
        return
    if newest.succeeds_now:
        yield f"failed before, {'succeeds' if count == 1 else 'succeed'} "
        yield Styled("now", "green")
        yield "; newest "
        yield Styled(newest.thread_id, "cyan")
        return
    yield Styled("different", "yellow")
    yield f" at step {newest.step}" if newest.step else ""
    yield f" in {', '.join(group.places)}" if group.places else ""
    if newest.recorded:
        yield f": recorded {shorten(newest.recorded, SHOWN_COLUMNS)}, new {shorten(newest.yielded, SHOWN_COLUMNS)}"
    else:
        yield f": {shorten(newest.message, SHOWN_COLUMNS)}"
    yield "; newest "
    yield Styled(newest.thread_id, "cyan")
