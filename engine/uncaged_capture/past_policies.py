"""Past effects of a flow, checked against a stricter policy. Nothing is performed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uncaged_bundles.errors import NotFoundError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.policy import Policy, refusal, widening
from uncaged_bundles.rights import Rights
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.api import Engine, ThreadView
from uncaged_engine.door.effects import handled
from uncaged_engine.door.past import PastEffect
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.services.registry import KNOWN, handler_for
from uncaged_engine.services.threads import effect_label, intended, traces_of

__all__ = ["PolicyCheck", "RefusedEffect", "check_past_policy"]

OUTCOME_KEYS = frozenset({"outcome", "error", "role"})
"""A line of a step has one of them."""
NOT_PERFORMED = frozenset({"policy", "refused-address", "effect", "not-begun"})
"""Kinds of errors of effects that were not performed: refused by their own policy, of a wrong form,
or beside one that failed first.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEffect:
    """A past effect that the policy refuses. part: its index in an `all`. effect: a few words."""

    thread_id: ThreadId
    step: int
    part: int | None
    kind: str
    effect: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCheck:
    """Past effects of a flow under a policy.

    threads, effects: numbers of those that were checked. undecided: number of effects whose
    refusal no journal tells, by ``KIND: LIMIT``. unread: why a thread was not checked, by its id.
    """

    threads: int
    effects: int
    refused: tuple[RefusedEffect, ...]
    undecided: Mapping[str, int]
    unread: Mapping[ThreadId, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """An effect of a thread. record: the line of its outcome, empty without one."""

    seq: int
    part: int | None
    kind: str
    body: object
    record: Mapping[str, Any]


def check_past_policy(engine: Engine, flow: str, policy: Policy) -> PolicyCheck:
    """Check all effects that the threads of *flow* asked for, oldest thread first.

    Effects that their own policy refused are left out, as are those that a fork inherited.
    """
    bundles: dict[BundleHash, Bundle] = {}
    refused: list[RefusedEffect] = []
    undecided: dict[str, int] = {}
    unread: dict[ThreadId, str] = {}
    threads = effects = 0
    for summary in engine.first_to_last(flow):
        thread_id = summary.thread_id
        try:
            view = engine.thread(thread_id)
            if summary.hash not in bundles:
                bundles[summary.hash] = engine.store.load_bundle(summary.hash, KNOWN)
            asked = list(_asked(view, BlobDirectory(engine.store.blobs)))
            calls = _calls(engine, view)
        except (UncagedError, OSError) as exc:
            unread[thread_id] = str(exc)
            continue
        threads += 1
        effects += len(asked)
        bundle = bundles[summary.hash]
        narrowed = _narrowed(bundle.descriptor.policy, policy)
        tools = Rights.of(bundle.descriptor.policy.limits.get("role", {})).effects
        for one in asked:
            message = _refusal(one, bundle, policy, calls.get(one.seq, ()))
            if message is not None:
                refused.append(
                    RefusedEffect(
                        thread_id=thread_id,
                        step=one.seq,
                        part=one.part,
                        kind=one.kind,
                        effect=effect_label(one.kind, one.body),
                        message=message,
                    )
                )
                continue
            # the operations that a role's agent has as tools are checked while it works
            kinds = (one.kind, *(tools if one.kind == "role" else ()))
            for limit in (limit for kind in kinds for limit in narrowed.get(kind, ())):
                undecided[limit] = undecided.get(limit, 0) + 1
    return PolicyCheck(
        threads=threads,
        effects=effects,
        refused=tuple(refused),
        undecided=undecided,
        unread=unread,
    )


def _asked(view: ThreadView, blobs: BlobDirectory) -> Iterator[_Asked]:
    """Yield the effects that the thread itself asked for, in order, with their parts."""
    fork = view.start.get("forkFrom")
    inherited = int(fork.get("seq", 0)) if isinstance(fork, Mapping) else 0
    intents: dict[int, Mapping[str, Any]] = {}
    outcomes: dict[int, Mapping[str, Any]] = {}
    for record in view.records:
        seq = int(record.get("seq", 0))
        if seq <= inherited or "sub" in record:
            continue
        if "intent" in record:
            intents[seq] = record
        elif "attempt" not in record and not OUTCOME_KEYS.isdisjoint(record):
            outcomes[seq] = record
    for seq, intent in intents.items():
        kind, body = intended(blobs.expand_record(intent)["intent"])
        record = blobs.expand_record(outcomes[seq]) if seq in outcomes else {}
        if body is None or _not_performed(record):
            continue
        yield _Asked(seq=seq, part=None, kind=kind, body=body, record=record)
        answer = record.get("outcome")
        results: list[Any] = answer if isinstance(answer, list) else []
        for part, (inner, part_body) in enumerate(handler_for(kind).parts(handled(body))):
            result = results[part] if part < len(results) else {}
            if not _not_performed(result):
                yield _Asked(seq=seq, part=part, kind=inner, body=part_body, record=result)


def _not_performed(record: Mapping[str, Any]) -> bool:
    """Tell whether an effect was not performed, for one of the reasons above."""
    error = record.get("error")
    return isinstance(error, Mapping) and error.get("kind") in NOT_PERFORMED


def _refusal(
    asked: _Asked, bundle: Bundle, policy: Policy, calls: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return why the policy refuses an effect: its kind, else by the checks of its handler."""
    by_kind = refusal(policy, asked.kind)
    if by_kind is not None:
        return by_kind
    descriptor = replace(bundle.descriptor, policy=policy)
    return handler_for(asked.kind).past_refusal(
        PastEffect(
            kind=asked.kind,
            body=handled(asked.body),
            outcome=asked.record.get("outcome"),
            bundle=replace(bundle, descriptor=descriptor),
            before=bundle.descriptor.policy,
            calls=calls,
        )
    )


def _calls(engine: Engine, view: ThreadView) -> dict[int, Sequence[Mapping[str, Any]]]:
    """Return the calls of each role step that has a trace; none of an imported thread, whose
    traces are elsewhere.
    """
    try:
        return {trace.seq: trace.calls for trace in traces_of(engine.store, view.records)}
    except NotFoundError:
        return {}


def _narrowed(before: Policy, after: Policy) -> dict[str, list[str]]:
    """Return by kind the limits that are narrower and hold only while an effect is performed."""
    found: dict[str, list[str]] = {}
    for kind, limits in before.limits.items():
        if kind not in after.limits:
            continue
        for key in sorted({*limits, *after.limits[kind]} - handler_for(kind).decided_limits):
            parts = ({kind: _only(one.limits[kind], key)} for one in (after, before))
            narrow, wide = (Policy(limits=one, trusted=False) for one in parts)
            if widening(narrow, wide, KNOWN):
                found.setdefault(kind, []).append(f"{kind}: {key}")
    return found


def _only(limits: Mapping[str, object], key: str) -> Mapping[str, object]:
    return {key: limits[key]} if key in limits else {}
