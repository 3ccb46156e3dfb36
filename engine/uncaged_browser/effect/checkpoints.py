"""Checkpoints of a thread's browser context: address, cookies and storage after each navigation.

A context that is lost, with its session or by a fork, is opened again at the last checkpoint. If
steps acted on the page since, a person decides whether they are done again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.errors import DamagedError, EnvironmentLacks, NotFoundError
from uncaged_bundles.records import dataclass, replace
from uncaged_engine.door.effects import EffectContext, handled
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.services.threads import parse_records

from ..expectations import described
from ..healing.healed import healed_in, with_healed
from ..operations import Operation, read_operation
from ..problems import BrowserProblem
from ..session.client import SessionClient
from ..session.messages import ContextSpec
from .table import operation_named

__all__ = ["LostPage", "fields_of", "open_or_restore", "save_checkpoint"]

RESTORE_S = 30.0
ActedStep = tuple[int, Mapping[str, object]]
"""Seq and operation of a step that acted, or may have."""


class LostPage(Exception):
    """The page of a thread is gone, and steps acted on it after the checkpoint."""

    def __init__(
        self, found: Checkpoint, acted: Sequence[ActedStep], thread: str, why: str = ""
    ) -> None:
        numbers = ", ".join(str(seq) for seq, _ in acted)
        steps = f"step{'' if len(acted) == 1 else 's'} {numbers}"
        super().__init__(
            f"the browser context of this thread is gone, and {steps} acted on its page after the checkpoint of step"
            f" {found.seq}{why}; --redo loads the checkpoint and does {steps} again, --skip goes on without this step, and"
            f" `uncaged-workflow fork {thread} --at {found.seq}` starts a new thread at the checkpoint"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The last checkpoint of a thread. doubtful: steps after it, by seq, that acted or failed."""

    seq: int
    hash: str
    doubtful: tuple[int, ...]


def save_checkpoint(
    client: SessionClient, name: str, operation: Operation, value: object, context: EffectContext
) -> str | None:
    """Save the context after an operation that loaded a page; return the hash of its blob."""
    loads = operation.effect == "navigates" or getattr(operation, "wait", False)
    url = value.get("url") if isinstance(value, Mapping) else None
    state = client.state(name) if loads and isinstance(url, str) else None
    if state is None:
        return None
    data = json.dumps({"url": url, "state": state}, sort_keys=True, separators=(",", ":"))
    return BlobDirectory(context.store.blobs).put(data.encode())


def fields_of(operation: Operation, checkpoint: str | None) -> dict[str, object]:
    """Return what a step's record says beside the outcome, for a later restoration."""
    if checkpoint is not None:
        return {"checkpoint": checkpoint}
    return {"acted": True} if operation.effect == "acts" else {}


def open_or_restore(
    client: SessionClient,
    spec: ContextSpec,
    context: EffectContext,
    perform_again: Callable[[Mapping[str, object]], object],
) -> None:
    """Open the context of a thread; if it had one that is gone, at the last checkpoint.

    Args:
        perform_again: performs an operation of the journal in the context.
    Raises:
        LostPage: a step acted on the page since, and no person decided to redo it, or the attempt
            to redo it failed.
        EnvironmentLacks: the page is another one now.
    """
    found = _last_checkpoint(context.steps())
    if found is None:
        client.open_context(spec)
        return
    if spec.name in client.status()["threads"]:
        return
    acted = acted_steps(found, context)
    if acted and not context.redo:
        raise LostPage(found, acted, context.thread_id)
    try:
        saved: dict[str, Any] = json.loads(BlobDirectory(context.store.blobs).get(found.hash))
    except DamagedError as exc:
        raise EnvironmentLacks(
            f"the checkpoint of step {found.seq} cannot be restored: {exc}",
            remedy=f"start at an earlier step: uncaged-workflow fork {context.thread_id} --at 0",
            begun=False,
        ) from None
    if not client.open_context(replace(spec, state=saved["state"], temporary=True)):
        return
    try:
        _load(client, spec.name, found, saved["url"])
        for seq, body in acted:
            if why := _redone(body, perform_again):
                client.close_context(spec.name)
                text = f"; step {seq} failed when it was done again: {why}"
                raise LostPage(found, acted, context.thread_id, text)
    except BaseException:
        client.close()  # the context ends with the connection
        raise
    client.keep_context(spec.name)


def _load(client: SessionClient, name: str, found: Checkpoint, url: str) -> None:
    """Load the page of a checkpoint."""
    body = {"do": "navigate", "url": url, "timeout_s": RESTORE_S}
    try:
        loaded = client.perform(name, body, RESTORE_S)
    except BrowserProblem as exc:
        client.close_context(name)
        raise _differs(found, url, str(exc)) from None
    if loaded["url"] != url:
        client.close_context(name)
        raise _differs(found, url, f"it leads to {loaded['url']} now")


def _redone(
    body: Mapping[str, object], perform_again: Callable[[Mapping[str, object]], object]
) -> str:
    """Perform an operation of the journal once more; return why it failed."""
    try:
        answer = perform_again(body)
    except BrowserProblem as exc:
        return str(exc)
    drift = answer.get("drift") if isinstance(answer, Mapping) else None
    return f"the page differs: {described(drift)}" if drift else ""


def acted_steps(found: Checkpoint, context: EffectContext) -> list[ActedStep]:
    """Return the steps that acted on the page after a checkpoint, or that may have and failed, with
    the operations that the journal has of them; one that was healed has the target with which it
    was performed.
    """
    if not found.doubtful:
        return []
    journal = context.store.journal_of(context.thread_id)
    if journal is None:
        raise NotFoundError(f"thread {context.thread_id} was removed")
    records = parse_records(journal.read_bytes(), BlobDirectory(context.store.blobs))
    intents = {record["seq"]: record["intent"] for record in records if "intent" in record}
    steps = {step["seq"]: step for step in context.steps()}
    acted: list[ActedStep] = []
    for seq in found.doubtful:
        kind, body = next(iter(intents[seq].items()))
        if kind != "browser" or not (steps[seq].get("acted") or _changes_pages(body)):
            continue
        mapping = shapes.mapping(handled(body), ("intent", seq))
        healed = healed_in(steps[seq].get("outcome"))
        acted.append((seq, with_healed(read_operation(mapping), healed) if healed else mapping))
    return acted


def _changes_pages(body: object) -> bool:
    operation = operation_named(body)
    return operation is not None and operation.effect != "reads"


def _differs(found: Checkpoint, url: str, why: str) -> EnvironmentLacks:
    return EnvironmentLacks(
        f"the page of the checkpoint of step {found.seq}, {url}, cannot be restored: {why}",
        remedy="see that it can be loaded",
        begun=False,
    )


def _may_have_acted(error: object) -> bool:
    """Whether an effect of any kind failed in a way that leaves open how much of it was done."""
    return isinstance(error, Mapping) and error.get("kind") in ("timeout", "refused", "crashed")


def _last_checkpoint(steps: Sequence[Mapping[str, Any]]) -> Checkpoint | None:
    doubtful: list[int] = []
    for step in reversed(steps):
        if "checkpoint" in step:
            return Checkpoint(
                seq=int(step["seq"]),
                hash=str(step["checkpoint"]),
                doubtful=tuple(reversed(doubtful)),
            )
        if step.get("acted") or _may_have_acted(step.get("error")):
            doubtful.append(int(step["seq"]))
    return None
