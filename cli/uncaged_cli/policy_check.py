"""Report of the past effects of a flow that a policy refuses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.clean import shorten
from uncaged_bundles.errors import UsageError

from .display.output import Styled, note, result
from .inputs.files import decode_text, parse_json, read_bytes

if TYPE_CHECKING:
    from uncaged_bundles.policy import Policy
    from uncaged_capture.past_policies import PolicyCheck, RefusedEffect
    from uncaged_engine.api import Engine

EXIT_REFUSED = 3
MAX_POLICY_BYTES = 1 << 20
SHOWN_COLUMNS = 200


def read_policy(file: Path) -> Policy:
    """Return the policy of a JSON file, as the key ``policy`` of a descriptor has it.

    Raises:
        UsageError: the file holds none.
    """
    from uncaged_bundles.hosts import check_policy
    from uncaged_bundles.policy import parse_policy
    from uncaged_bundles.shapes import ShapeError
    from uncaged_engine.effect_kinds import KNOWN

    try:
        raw = parse_json(decode_text(read_bytes(file, max_bytes=MAX_POLICY_BYTES), file))
        policy = parse_policy(raw, KNOWN)
        check_policy(policy.limits, ("policy",))
    except (ValueError, ShapeError) as exc:
        raise UsageError(f"{file}: {exc}") from exc
    return policy


def policy_check_of(engine: Engine, flow: str, file: Path) -> PolicyCheck:
    """Check the past effects of *flow* against the policy of *file*.

    Raises:
        NotFoundError: there is no such flow.
    """
    from uncaged_capture.past_policies import check_past_policy

    policy = read_policy(file)
    return check_past_policy(engine, engine.registry.resolve(flow)[0] or flow, policy)


def policy_document(check: PolicyCheck) -> Mapping[str, object]:
    """Return a check as JSON data."""
    return {
        "threads": check.threads,
        "effects": check.effects,
        "refused": [_refused_document(one) for one in check.refused],
        "undecided": dict(check.undecided),
        "unread": dict(check.unread),
    }


def _refused_document(one: RefusedEffect) -> Mapping[str, object]:
    return {
        "threadId": one.thread_id,
        "step": one.step,
        "part": one.part,
        "kind": one.kind,
        "effect": one.effect,
        "message": one.message,
    }


def show_policy_check(check: PolicyCheck, flow: str) -> None:
    """Print each refused effect, and a summary."""
    for one in check.refused:
        step = f" step {one.step}" if one.part is None else f" step {one.step}, part {one.part + 1}"
        words = shorten(one.effect, SHOWN_COLUMNS)
        result(Styled(one.thread_id, "cyan"), step, ": ", Styled(words, "yellow"))
        result("  ", one.message)
    for limit, count in check.undecided.items():
        note(
            f"not decided for {count} effect{_s(count)}: {limit} holds while an effect is performed"
        )
    for thread_id, why in check.unread.items():
        note(f"not checked: {thread_id}: {why}")
    threads = len({one.thread_id for one in check.refused})
    past = f"{check.effects} past effect{_s(check.effects)} of {check.threads} thread{_s(check.threads)} of {flow}"
    within = f" in {threads} thread{_s(threads)}" if threads else ""
    note(f"{past}: {len(check.refused)} would be refused{within}")


def _s(count: int) -> str:
    return "" if count == 1 else "s"
