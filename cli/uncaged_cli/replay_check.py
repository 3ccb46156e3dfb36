"""Report of a replay check: the past threads of a flow, replayed against another version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from uncaged_bundles.clean import shorten

from .display import json_output
from .display.output import Styled, result

if TYPE_CHECKING:
    from uncaged_engine.api import Engine
    from uncaged_engine.threads.regression import ReplayCheck

SHOWN_COLUMNS = 400
EXIT_DIVERGED = 1


def _thread_document(thread: ReplayCheck) -> Mapping[str, object]:
    fields = {
        "threadId": thread.thread_id,
        "steps": thread.steps,
        "identical": thread.identical,
        "step": thread.step,
    }
    return {
        **fields,
        "recorded": thread.recorded,
        "yielded": thread.yielded,
        "message": thread.message,
    }


def show_check(engine: Engine, flow: str, source: bytes, *, as_json: bool) -> int:
    """Replay the past threads of *flow* against *source*, print each difference, and return the
    exit code: 0 if all threads are identical.
    """
    from uncaged_bundles.validation.validate import read_bundle
    from uncaged_engine.effect_kinds import KNOWN

    bundle = read_bundle(source, KNOWN)
    checked = engine.check(flow, bundle)
    diverged = [thread for thread in checked if not thread.identical]
    if as_json:
        json_output.document(
            {
                "flow": flow,
                "hash": bundle.hash,
                "identical": len(checked) - len(diverged),
                "threads": [_thread_document(thread) for thread in checked],
            }
        )
        return EXIT_DIVERGED if diverged else 0
    for thread in diverged:
        result(
            Styled(thread.thread_id, "cyan"),
            " ",
            Styled("diverges", "yellow"),
            f" at step {thread.step}" if thread.step else "",
        )
        if thread.recorded:
            result(f"  recorded  {shorten(thread.recorded, SHOWN_COLUMNS)}")
            result(f"  yielded   {shorten(thread.yielded, SHOWN_COLUMNS)}")
        elif thread.message:
            result(f"  {shorten(thread.message, SHOWN_COLUMNS)}")
    total = f"{len(checked)} past thread{'' if len(checked) == 1 else 's'} of {flow} against {bundle.hash}"
    result(f"{total}: {len(checked) - len(diverged)} identical, {len(diverged)} diverge")
    return EXIT_DIVERGED if diverged else 0
