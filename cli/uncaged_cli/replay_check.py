"""What another version would have done in a flow's past threads is told thread by thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from uncaged_bundles.clean import shorten

from .display import json_output
from .display.output import Styled, result

if TYPE_CHECKING:
    from uncaged_engine.api import Engine
    from uncaged_engine.threads.proof import Checked

SHOWN_COLUMNS = 400
EXIT_DIVERGED = 1


def _document(one: Checked) -> Mapping[str, object]:
    fields = {
        "threadId": one.thread_id,
        "steps": one.steps,
        "identical": one.identical,
        "step": one.step,
    }
    return {**fields, "recorded": one.recorded, "yielded": one.yielded, "message": one.message}


def show_check(engine: Engine, flow: str, source: bytes, *, as_json: bool) -> int:
    """Replay the past threads of *flow* against *source*, say how each would have gone, and return
    0 if all went alike.
    """
    from uncaged_bundles.validation.validate import read_bundle
    from uncaged_engine.effect_kinds import KNOWN

    bundle = read_bundle(source, KNOWN)
    checked = engine.check(flow, bundle)
    diverged = [one for one in checked if not one.identical]
    if as_json:
        json_output.document(
            {
                "flow": flow,
                "hash": bundle.hash,
                "identical": len(checked) - len(diverged),
                "threads": [_document(one) for one in checked],
            }
        )
        return EXIT_DIVERGED if diverged else 0
    for one in diverged:
        result(
            Styled(one.thread_id, "cyan"),
            " ",
            Styled("diverges", "yellow"),
            f" at step {one.step}" if one.step else "",
        )
        if one.recorded:
            result(f"  then  {shorten(one.recorded, SHOWN_COLUMNS)}")
            result(f"  now   {shorten(one.yielded, SHOWN_COLUMNS)}")
        elif one.message:
            result(f"  {shorten(one.message, SHOWN_COLUMNS)}")
    total = f"{len(checked)} past thread{'' if len(checked) == 1 else 's'} of {flow} against {bundle.hash}"
    result(f"{total}: {len(checked) - len(diverged)} identical, {len(diverged)} diverge")
    return EXIT_DIVERGED if diverged else 0
