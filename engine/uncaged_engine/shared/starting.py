"""Start of a thread in a shared store: the start record is composed from this machine's settings,
and a worker drives the thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.validation.validate import Bundle

from ..door.preparing import RunOptions
from ..effect_kinds import KNOWN
from ..journal import chain, lines
from ..settings.loading import load
from ..state.observe import start_in
from ..stores.protocol import ThreadEntry, ThreadNotes
from ..threads.starting import Chance, new_start, start_line
from .admission import Turn, TurnKind
from .dispatch import Dispatcher
from .needs import needs_of
from .replica import Replica


def start_shared(
    replica: Replica,
    dispatcher: Dispatcher,
    flow: str,
    *,
    prompt: str,
    params: Mapping[str, object],
    options: RunOptions,
    chance: Chance,
    thread: ThreadId | None = None,
    parent: Mapping[str, object] | None = None,
) -> tuple[BundleHash, ThreadId]:
    """Start a thread; the store has it when this returns, and a worker drives it once one is free.

    Args:
        thread, parent: as for `Engine.run`, of a child.
    Raises:
        UncagedError: it cannot start; nothing was written.
    """
    name, bundle_hash = replica.resolve(flow)
    bundle = replica.bundle(bundle_hash)
    require_carried(bundle)
    if parent is not None:
        require_repository(bundle, options)
    made, start = new_start(
        store=replica.files,
        thread=thread,
        parent=parent,
        config=load(replica.files),
        bundle=bundle,
        name=name or bundle.descriptor.name,
        prompt=prompt,
        params=params,
        options=options,
        chance=chance,
    )
    body = start_line(replica.files, start, chance.clock_ms())
    line, _ = chain.seal(chain.seed(bundle_hash, made), body)
    replica.send_blobs(line)
    turn = turn_of(replica, bundle, start, is_child=parent is not None)
    dispatcher.submit(bundle_hash, made, turn, from_line=0)
    # crash here: submitted and never written; its worker gives it up
    entry = ThreadEntry(bundle=bundle_hash, id=made, place=0, by_thread=parent is not None)
    replica.backend.threads.start(entry, [line], ThreadNotes())
    return bundle_hash, made


def turn_of(
    replica: Replica,
    bundle: Bundle,
    start: Mapping[str, Any],
    *,
    is_child: bool,
    is_later: bool = False,
) -> Turn:
    """Return the turn of a thread.

    Args:
        start: its start record, with all its fields. is_child: a thread waits for it. is_later: it
            was driven before.
    """
    flow = str(start["name"])
    kind = TurnKind(
        flow=flow,
        needs=needs_of(bundle, start),
        is_child=is_child,
        is_nested=is_child and flow in _flows_above(replica, start),
        is_later=is_later,
    )
    return Turn(kind=kind, priority=int(start["parameters"]["options"].get("priority", 0)))


def _flows_above(replica: Replica, start: Mapping[str, Any]) -> Iterator[str]:
    """Yield the flows of the threads that wait for the thread, the nearest one first."""
    threads = replica.backend.threads
    while (parent := start.get("parent")) is not None:
        try:
            entry = threads.locate(parent["threadId"])
            start = start_in(threads.ends([entry], limit=1)[entry.id].first)
        except (NotFoundError, KeyError):
            return
        yield str(start["name"])


def require_carried(bundle: Bundle) -> None:
    """Refuse a flow that a worker on another machine could not carry out.

    Raises:
        RefusedError: its policy allows effects that use something of one machine.
    """
    for kind, limits in bundle.descriptor.policy.limits.items():
        if used := KNOWN[kind].of_one_machine(limits):
            raise RefusedError(
                f"{bundle.descriptor.name} uses {used}, which no worker has; run it without --store"
            )


def require_files(bundle: Bundle, start: Mapping[str, object]) -> None:
    """Refuse a thread whose roles work on files that are not in the store.

    Raises:
        RefusedError: it was started in a directory and copied.
    """
    workspace = start.get("workspace")
    if isinstance(workspace, Mapping) and lines.PACK_KEY not in workspace:
        raise RefusedError(
            f"{bundle.descriptor.name} works in {workspace.get('repository')}, whose files are not in this store, since"
            " the thread was started in a directory; go on with it there"
        )


def require_repository(bundle: Bundle, options: RunOptions) -> None:
    """Refuse a child that would work in a worker's directory.

    Raises:
        RefusedError: its roles work on files, and its parent has none.
    """
    works = "workspace" in bundle.descriptor.policy.limits.get("role", {})
    if works and options.parent_workspace is None:
        raise RefusedError(
            f"{bundle.descriptor.name} works on the files of a repository, and the thread that calls it has none;"
            " start it by `run`"
        )
