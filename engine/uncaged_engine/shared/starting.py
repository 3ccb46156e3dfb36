"""Start of a thread in a shared store: the start record is composed from this machine's settings,
and a worker drives the thread.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.validation.validate import Bundle

from ..door.preparing import RunOptions
from ..journal import chain
from ..settings.loading import load
from ..stores.protocol import ThreadEntry, ThreadNotes
from ..threads.starting import Chance, new_start, start_line
from .dispatch import Dispatcher
from .replica import Replica

CARRIED_KINDS = frozenset(
    ("all", "ask", "fetch", "flow", "http", "llm", "null", "now", "script", "search", "sleep")
)
"""Effect kinds that need nothing of the machine that starts a thread. The others need a workspace
or a browser, which a worker elsewhere does not have.
"""


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
    require_carried(bundle, options)
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
    dispatcher.submit(bundle_hash, made, from_line=0, is_child=parent is not None)
    # crash here: submitted and never written; its worker gives it up
    entry = ThreadEntry(bundle=bundle_hash, id=made, place=0, by_thread=parent is not None)
    replica.backend.threads.start(entry, [line], ThreadNotes())
    return bundle_hash, made


def require_carried(bundle: Bundle, options: RunOptions | None = None) -> None:
    """Refuse a flow that a worker on another machine could not carry out.

    Raises:
        RefusedError: it needs something of this machine.
    """
    others = sorted(set(bundle.descriptor.policy.limits) - CARRIED_KINDS)
    if others:
        raise RefusedError(
            f"{bundle.descriptor.name} uses {', '.join(others)}, which a shared store's workers cannot do yet; run it without --store"
        )
    if options is not None and options.binds:
        raise RefusedError(
            "agents, a workspace and a test command are not carried to workers of a shared store yet; run it without --store"
        )
