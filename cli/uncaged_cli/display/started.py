"""Output of a thread that a verb started or resumed: its steps, or with --detach its id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from . import json_output
from .output import result

if TYPE_CHECKING:
    from uncaged_bundles.ids import ThreadId
    from uncaged_engine.api import Engine

    from .plain import FollowView


def follow_or_print(
    engine: Engine,
    thread_id: ThreadId,
    *,
    detach: bool,
    as_json: bool,
    verbose: bool,
    known_records: int = 0,
    fields: Mapping[str, object] | None = None,
    view: FollowView | None = None,
) -> int:
    """Follow a thread, or with *detach* print its id; *fields* are added to the JSON document."""
    if not detach:
        from .follow import follow  # 17 ms, which a detached run does not need

        return follow(
            engine,
            thread_id,
            as_json=as_json,
            verbose=verbose,
            known_records=known_records,
            view=view,
        )
    if as_json:
        json_output.document({"threadId": thread_id, **(fields or {})})
    else:
        result(thread_id)
    return 0
