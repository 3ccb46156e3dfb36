"""Verification of a journal: its chain, and a replay of its bundle over the recorded outcomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from uncaged_bundles.errors import BundleError, ReplayError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..cells.cell import Cell, CellDied, CellLimits
from ..cells.replay import Replay, replay_timeout_s
from ..cells.reply import BundleReply, mismatch, shown
from ..effect_kinds import KNOWN
from ..journal import durable
from ..journal.blobs import BlobDirectory, Blobs, effect_mark
from ..journal.codec import decode, encode
from ..journal.recover import History, recover_strictly
from ..sandbox.mechanism import choose
from . import tails
from .composites import find_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Result of `verify`. ok: nothing differs. steps: their number. mechanism: the sandbox of the
    replay.

    kept_aside: the file with a damaged tail that was cut first.
    """

    ok: bool
    steps: int
    mechanism: str
    message: str
    kept_aside: Path | None = None


def verify(
    store: Store,
    bundle_hash: BundleHash,
    thread: ThreadId,
    path: Path,
    *,
    prefer: str,
    deadline_s: float,
) -> Verification:
    """Check every line, then replay the bundle over the recorded outcomes in a process of its own.

    A damaged tail is cut first: no other command takes the lock of a thread that has ended.
    """
    tails.settle(store, path, bundle_hash, thread)
    data = durable.read(path).data
    history = recover_strictly(data, bundle_hash, thread)
    kept_aside = None
    # a sealed line was written by an engine: no torn tail, so it is not cut
    if history.damage is not None and history.damage.tail and not history.damage.sealed:
        kept_aside = tails.cut(store, path, bundle_hash, thread)
        data = durable.read(path).data
        history = recover_strictly(data, bundle_hash, thread)
    return replace(
        _prove(store, bundle_hash, data, history, prefer=prefer, deadline_s=deadline_s),
        kept_aside=kept_aside,
    )


def _prove(
    store: Store,
    bundle_hash: BundleHash,
    data: bytes,
    history: History,
    *,
    prefer: str,
    deadline_s: float,
) -> Verification:
    if history.damage is not None:
        where = "a torn tail" if history.damage.tail else "damage"
        message = f"{where} at line {history.damage.line}: {history.damage.reason}"
        return Verification(ok=False, steps=len(history.steps), mechanism="none", message=message)
    bundle = store.load_bundle(bundle_hash, KNOWN)
    return replay_files(
        bundle, data, history, BlobDirectory(store.blobs), prefer=prefer, deadline_s=deadline_s
    )


def replay_files(
    bundle: Bundle,
    data: bytes,
    history: History,
    blobs: Blobs,
    *,
    prefer: str,
    deadline_s: float,
) -> Verification:
    """Replay *bundle* over a journal without damage in a process of its own.

    Args:
        data: the journal's bytes. blobs: those that it names.
    """
    count = len(history.steps)
    if difference := find_difference(history, data, blobs):
        return Verification(ok=False, steps=count, mechanism="none", message=difference)
    if bundle.trusted:
        return Verification(
            ok=True,
            steps=count,
            mechanism="none",
            message="the chain holds; a trusted bundle is not replayed, so its effects are not proved",
        )
    start = blobs.expand_record(history.start)
    own_s = (start["parameters"]["options"] | history.limits).get("bundleSeconds", 0)
    limit_s = replay_timeout_s(data, count, max(deadline_s, own_s))
    cell = Cell.start(
        bundle, choose(prefer), limits=CellLimits(cpu_s=max(CellLimits().cpu_s, ceil(2 * limit_s)))
    )
    try:
        replay = Replay(history, start, blobs, trusted=False)
        now = replay.run(cell, 1, deadline_s=limit_s)
        if now is None:
            now = replay.run_stepwise(cell, 2, data, deadline_s=limit_s)
        problem = difference_at_the_end(history, now)
    except (ReplayError, BundleError) as exc:
        problem = str(exc)
    except CellDied as died:
        problem = f"the bundle gave no answer: {died.reason}: {died.detail}"
    finally:
        cell.close()
    message = (
        problem
        or f"{count} step{'' if count == 1 else 's'} replayed: this code with these outcomes gives this journal"
    )
    return Verification(ok=problem is None, steps=count, mechanism=cell.mechanism, message=message)


def difference_at_the_end(history: History, now: BundleReply) -> str | None:
    """Describe how journal and bundle differ after the last step; return None if they do not."""
    if history.pending is not None:
        mark = effect_mark(now.body) if now.word == "effect" else now.body
        return (
            None
            if mark == history.pending.mark
            else mismatch(len(history.steps) + 1, history.pending.shown, now.body)
        )
    end = history.end
    if end is None or end["end"] in ("killed", "limit"):
        return None
    if end["end"] == "completed":
        recorded = encode(end.get("result")).encode()
        same = now.word == "return" and ("blob" in end or recorded == now.body)
        return (
            None
            if same
            else f"the journal ends with {shown(recorded)}, the bundle now with {now.word} {shown(now.body)}"
        )
    error = end["error"]
    if error["kind"] != "bundle" or "type" not in error:
        return None
    raised = decode(now.body) if now.word == "raise" else None
    same = (
        isinstance(raised, dict)
        and raised.get("type") == error["type"]
        and raised.get("message") == error["message"]
    )
    return (
        None
        if same
        else f"the journal ends with {error['type']}: {error['message']}; the bundle now with {now.word} {shown(now.body)}"
    )
