"""Report of a replay check: the past threads of a flow, replayed against another version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from uncaged_bundles.clean import shorten

from .display import json_output
from .display.output import Styled, result
from .policy_check import EXIT_REFUSED, policy_document, show_policy_check

if TYPE_CHECKING:
    from uncaged_capture.past_policies import PolicyCheck
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


def show_check(
    engine: Engine,
    flow: str,
    source: bytes,
    *,
    policy: PolicyCheck | None = None,
    as_json: bool,
) -> int:
    """Replay the past threads of *flow* against *source*, print each difference, and return the
    exit code: 0 if all threads are identical.

    Args:
        policy: past effects that a policy refuses, printed after them.
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
                **({} if policy is None else {"policy": policy_document(policy)}),
            }
        )
        return _exit_code(diverged, policy)
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
    if policy is not None:
        show_policy_check(policy, flow)
    return _exit_code(diverged, policy)


def _exit_code(diverged: list[ReplayCheck], policy: PolicyCheck | None) -> int:
    if diverged:
        return EXIT_DIVERGED
    return EXIT_REFUSED if policy is not None and policy.refused else 0
