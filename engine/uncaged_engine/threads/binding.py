"""Binding of an imported thread to this machine's agents, workspace, test command and limits.

A person has to accept a list of them, and of the imported data that is trusted: prompt, parameters
and recorded outcomes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.policy import widening
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..door.preparing import NewThread, RunOptions
from ..effect_kinds import KNOWN
from ..journal import durable
from ..journal.blobs import BlobDirectory
from ..journal.origin import unbound
from ..journal.recover import History, recover
from ..sandbox.mechanism import choose
from ..settings.config import Config
from ..state.observe import step_records, view
from .cutting import Cut, kept_steps
from .parameters import PATH
from .preparing import describe, prepare_import, secure
from .starting import checked_params, default_limits, test_command_of

SHOWN_CHARACTERS = 2000

Accept = Callable[[tuple[str, ...]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadBinding:
    """What an imported thread uses of this machine, as the ``binding`` of a resume control has it.
    Nothing is written before `secure`.
    """

    thread: NewThread
    fields: Mapping[str, Any]

    def secure(self) -> None:
        """Protect what the fields name from removal by other programs."""
        secure(self.thread, self.fields, ())


def bind_here(
    store: Store,
    config: Config,
    bundle: Bundle,
    source: tuple[BundleHash, ThreadId, Path],
    *,
    thread: ThreadId,
    cut: Cut | None = None,
    options: RunOptions,
    accept: Accept | None,
    now_ms: int,
) -> ThreadBinding:
    """Choose what an imported thread uses of this machine, as `run` would choose it.

    Args:
        bundle: the version to run. thread: the thread to run: the source, or a fork of it that
            keeps the steps of *cut*.
        accept: called with one sentence for each item that would be used, local or imported.
    Raises:
        UsageError: the parameters are not valid here, or the workspace cannot be used.
            EnvironmentLacks: no agent.
        RefusedError: not accepted; or the parameters mean something else here; or the branch
            exists already.
    """
    source_hash, source_thread, path = source
    if accept is None:
        raise RefusedError(unbound(source_thread))
    history = recover(durable.read(path).data, source_hash, source_thread)
    start = view(store, *source).start
    kept = len(history.steps) if cut is None else kept_steps(history, cut, source_thread)
    if bundle.hash == source_hash:
        _check_params(bundle, start["parameters"]["params"], config, options)
    new = NewThread(
        thread_id=thread,
        flow=str(start["name"]),
        bundle=bundle,
        store=store,
        config=config,
        options=options,
        now_ms=now_ms,
    )
    fields = _chosen(new, step_records(history, BlobDirectory(store.blobs))[:kept])
    if not accept(tuple(_sentences(new, start, history, fields, kept))):
        raise RefusedError(unbound(source_thread))
    return ThreadBinding(thread=new, fields=fields)


def _chosen(thread: NewThread, steps: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Return the fields of the binding but for consent. steps: those that the thread keeps."""
    config, bundle, options = thread.config, thread.bundle, thread.options
    prepared = prepare_import(thread, steps)
    fields: dict[str, Any] = {
        "agents": prepared.pop("agents", {}),
        "sandbox": "none" if bundle.trusted else choose(config.sandbox).name,
        "limits": {**default_limits(config, thread.flow, bundle), **options.recorded()},
    }
    test_command = test_command_of(config, thread.flow, options)
    if test_command:
        fields["testCommand"] = test_command
    return {**fields, **prepared}


def _check_params(
    bundle: Bundle, params: Mapping[str, object], config: Config, options: RunOptions
) -> None:
    """Refuse parameters that this machine would resolve differently: bundle and policy have seen
    the recorded ones.
    """
    settled = checked_params(bundle, params, config, options)
    for key, value in settled.items():
        if key not in params or params[key] != value:
            raise RefusedError(
                f"the parameter {key!r} of the imported thread is {_short(params.get(key))}, which means {_short(value)} here; "
                f"start a new thread: uncaged-workflow run {bundle.descriptor.name}"
            )


def _sentences(
    new: NewThread, start: Mapping[str, Any], history: History, fields: Mapping[str, Any], kept: int
) -> Iterator[str]:
    """Yield one sentence for each item that the person accepts."""
    bundle, steps = new.bundle, f"{kept} step{'' if kept == 1 else 's'}"
    yield (
        f"the flow {start['name']} (bundle {bundle.hash}) goes on from {steps} recorded elsewhere: their outcomes are "
        "believed as they are, and agents read them"
    )
    pending = history.pending
    if pending is not None and kept == len(history.steps):
        yield f"step {pending.seq} was begun elsewhere; nothing is known here of what became of it"
    parameters = start["parameters"]
    if parameters["prompt"]:
        yield f"the prompt from elsewhere: {_short(parameters['prompt'])}"
    properties = bundle.descriptor.parameters.get("properties", {})
    for key, value in parameters["params"].items():
        declared = properties.get(key) if isinstance(properties, Mapping) else None
        kind = (
            "path"
            if isinstance(declared, Mapping) and declared.get("format") == PATH
            else "parameter"
        )
        yield f"the {kind} {key!r} from elsewhere: {_short(value)}"
    yield from describe(new, fields)
    yield "limits: " + ", ".join(f"{name} {value:.15g}" for name, value in fields["limits"].items())
    yield from (
        f"by its policy: {sentence}" for sentence in widening(None, bundle.descriptor.policy, KNOWN)
    )


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = (
        text
        if len(text) <= SHOWN_CHARACTERS
        else f"{text[:SHOWN_CHARACTERS]}… ({len(text):,} characters)"
    )
    return json.dumps(shown, ensure_ascii=False)
