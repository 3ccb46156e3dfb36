"""Child threads of effects: start, supervision to the end, and recovery after a crash.

A child's id is derived from the key of the effect that starts it, so its journal is the record of
whether it was started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from uncaged_bundles.errors import (
    EnvironmentLacks,
    NotFoundError,
    RefusedError,
    StorageError,
    UncagedError,
)
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store

from ..api import Engine
from ..door.children import depth_of, derived_id
from ..door.effects import EffectContext, RunChild
from ..door.outcomes import Failure, Outcome, Void
from ..journal.usage import NOTHING, SPENDING_LIMITS, counted_usage
from ..state.reason import doubt_about
from ..threads.children import options_of, outcome_of
from ..threads.starting import Chance

__all__ = [
    "Engine",
    "begin",
    "child_id",
    "children_in",
    "result_of",
    "run_to_end",
    "stop",
]

_POLL_S = 0.5
_OUTAGE_POLL_S = 2.0


def child_id(context: EffectContext) -> ThreadId:
    """Return the id of the child that an effect starts."""
    return derived_id(context.key, context.intended_ms)


def begin(
    engine: Engine,
    child: ThreadId,
    context: EffectContext,
    *,
    flow: str,
    prompt: str,
    params: Mapping[str, object],
    max_rounds: int | None = None,
) -> None:
    """Start the child thread of an effect, with what is left of its parent's limits."""
    options = replace(options_of(context), max_rounds=max_rounds)
    parent = {
        "threadId": context.thread_id,
        "seq": context.seq,
        "depth": depth_of(context.start) + 1,
    }
    engine.run(
        flow,
        prompt=prompt,
        params=params,
        options=options,
        thread=child,
        parent=parent,
    )


def run_to_end(
    engine: Engine,
    context: EffectContext,
    *,
    flow: str,
    prompt: str,
    params: Mapping[str, object],
    max_rounds: int | None = None,
) -> Outcome:
    """Start the child thread of an effect, or find the one that an earlier attempt started, and
    return its outcome.

    Raises:
        EnvironmentLacks: there is no space for its journal, or it was imported.
    """
    child = child_id(context)
    try:
        if not engine.has_thread(child):
            begin(
                engine,
                child,
                context,
                flow=flow,
                prompt=prompt,
                params=params,
                max_rounds=max_rounds,
            )
    except StorageError as exc:
        # the same child is started once there is space for its journal
        raise EnvironmentLacks(f"{flow}: {exc}") from exc
    except UncagedError as exc:
        return Failure.of("flow", f"{flow}: {exc}")
    # crash here: the child runs; asked again, we find it
    try:
        with context.cancel.on_request(lambda: stop(engine, child)):
            return result_of(engine, child, context)
    except NotFoundError:
        return Failure.of(
            "flow",
            f"{flow}: its thread {child} was removed before it had ended",
            threadId=child,
        )


def children_in(address: str, home: Store, chance: Chance) -> RunChild:
    """Return what starts the children of a shared store's threads in that store, where any worker
    may drive them, and waits for them.

    Args:
        home: this machine's directory, with the configuration.
    """

    def run_child(
        context: EffectContext,
        *,
        flow: str,
        prompt: str,
        params: Mapping[str, object],
        max_rounds: int | None,
    ) -> Outcome:
        from ..shared_engine import shared_engine  # a worker of a directory does without

        while True:
            try:
                with shared_engine(
                    address, home, is_visible=False, report=_report_nothing, chance=chance
                ) as engine:
                    return run_to_end(
                        engine,
                        context,
                        flow=flow,
                        prompt=prompt,
                        params=params,
                        max_rounds=max_rounds,
                    )
            except (StorageError, EnvironmentLacks) as exc:
                # a parent that was left would wait for a person; the child, if it began, is found
                if not isinstance(exc, StorageError) and not isinstance(
                    exc.__cause__, StorageError
                ):
                    raise
                context.progress({"text": f"waits: {exc}"})
            if context.cancel.wait(_OUTAGE_POLL_S):
                return Void(word="killed", message="killed while the store could not be used")

    return run_child


def _report_nothing(_reason: str) -> None:
    """Report nothing: its parent's followers see that it has not begun."""


def stop(engine: Engine, child: ThreadId) -> None:
    """Kill the child unless it has ended or was removed."""
    try:
        engine.kill(child)
    except (RefusedError, NotFoundError):
        return


def result_of(engine: Engine, child: ThreadId, context: EffectContext) -> Outcome:
    """Wait until the child has ended and return its outcome. A child without a worker is resumed;
    one that is paused or waiting is polled until a person lets it go on.

    Raises:
        EnvironmentLacks: the child was imported.
    """
    # an importer who has the parent's journal can compute the child's id
    if engine.thread(child).summary.imported:
        raise EnvironmentLacks(
            f"the thread {child} was imported, so it is not the one that this step started",
            remedy=f"remove it: `thread rm {child}`",
        )
    again, shown = context.attempt > 1, ""
    while True:
        status = _follow(engine, child, context)
        shown = status if status == shown else _report(child, status, context)
        if context.cancel.requested:
            return Void(word="killed", message=f"killed, and its child {child} with it")
        if status == "unknown" or (
            status in ("killed", "limit") and again and engine.thread(child).summary.undecided
        ):
            doubt = doubt_about(engine.thread(child).summary.undecided)
            context.progress(
                {"child": child, "text": f"{child} needs `resume --redo` or `--skip`: {doubt}"}
            )
            if context.cancel.wait(_POLL_S):
                return Void(
                    word="killed", message=f"killed while its child {child} needed a decision"
                )
        elif status == "interrupted" or (again and _is_stopped(engine, child, status)):
            again = False
            try:
                engine.resume(
                    child, options=options_of(context, ran_s=engine.thread(child).ran_ms / 1000)
                )
            except RefusedError:
                # its limit is not higher than before; in another state it was resumed meanwhile
                if engine.thread(child).summary.status == status:
                    return _outcome_of(engine, child, status)
        elif _is_stopped(engine, child, status) and status == "limit":
            return Void(
                word="limit",
                message=f"its child {child} reached {engine.thread(child).summary.message}",
            )
        elif status in ("completed", "failed", "killed", "limit", "corrupt"):
            return _outcome_of(engine, child, status)
        elif context.cancel.wait(_POLL_S):
            # paused or waiting: only a person can let it go on
            return Void(word="killed", message=f"killed while its child {child} was {status}")


def _report(child: ThreadId, status: str, context: EffectContext) -> str:
    """Report that a child is paused or waiting, with the command that lets it go on; return the
    status.
    """
    commands = {"waiting": f"answer {child} TEXT", "paused": f"resume {child}"}
    if status in commands:
        text = f"{child} is {status}: `uncaged-workflow {commands[status]}`"
        context.progress({"child": child, "waits": True, "text": text})
    return status


def _follow(engine: Engine, child: ThreadId, context: EffectContext) -> str:
    """Follow the child until it stops and return its status; report its usage as progress."""
    status, spent = "", NOTHING
    for event in engine.follow(child):
        usage = event.body.get("usage") if event.kind == "progress" else None
        if event.kind == "status":
            status = str(event.body["status"])
        elif event.kind == "record" and (used := counted_usage(event.body)):
            spent = spent.plus(used)
            context.progress({"child": child, "usage": spent.document()})
        elif event.kind == "record" and "intent" in event.body:
            context.progress({"child": child, "text": f"step {event.body['seq']} of {child}"})
        elif usage:
            context.progress({"child": child, "usage": spent.plus(usage).document()})
    return status


def _is_stopped(engine: Engine, child: ThreadId, status: str) -> bool:
    """Whether a kill, or a limit that it shares with its parent, stopped a child that can go on."""
    end = engine.thread(child).end if status == "limit" else None
    return status == "killed" or (end is not None and end.get("limit") in SPENDING_LIMITS)


def _outcome_of(engine: Engine, child: ThreadId, status: str) -> Outcome:
    return outcome_of(engine.thread(child), status)
