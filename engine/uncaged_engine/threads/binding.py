"""Binding of an imported thread to this machine: agents, workspace, test command and limits are chosen here.

A person accepts them in words, together with what is believed of the archive: its prompt, parameters and recorded outcomes.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.policy import widening
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..journal import durable
from ..journal.blobs import Blobs
from ..journal.lines import COMMIT
from ..journal.origin import unbound
from ..journal.recover import History, recover
from ..sandbox.mechanism import choose
from ..settings.config import Config
from ..state.observe import step_records, view
from .cutting import Cut, kept_steps
from .parameters import PATH
from .starting import RunOptions, bind_agents, checked_params, default_limits, inspect_workspace, test_command_of

SHOWN_CHARACTERS = 2000

Accept = Callable[[tuple[str, ...]], bool]


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
) -> dict[str, Any]:
    """Return the ``binding`` of a resume control: whatever an imported thread needs, chosen on this machine as `run` would.

    Args:
        bundle: the version that goes on. thread: the one that goes on: the source, or its fork, which keeps the steps of *cut*.
        accept: is asked with one sentence for each thing that would be used, of here and of elsewhere.
    Raises:
        UsageError: its parameters do not fit here, or the workspace cannot be used. EnvironmentLacks: no agent.
        RefusedError: not accepted; or its parameters mean something else here; or its branch is there already.
    """
    source_hash, source_thread, path = source
    if accept is None:
        raise RefusedError(unbound(source_thread))
    history = recover(durable.read(path).data, source_hash, source_thread)
    start = view(store, *source).start
    kept = len(history.steps) if cut is None else kept_steps(history, cut, source_thread)
    if bundle.hash == source_hash:
        _check_params(bundle, start["parameters"]["params"], config, options)
    claimed = _last_commit(step_records(history, Blobs(store.blobs))[:kept])
    fields = _chosen(config, bundle=bundle, name=str(start["name"]), thread=thread, claimed=claimed, options=options, now_ms=now_ms)
    if not accept(tuple(_sentences(bundle, start, history, fields, kept))):
        raise RefusedError(unbound(source_thread))
    _pin(fields, thread, store, options)
    return fields


def _chosen(
    config: Config, *, bundle: Bundle, name: str, thread: ThreadId, claimed: str | None, options: RunOptions, now_ms: int
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "agents": bind_agents(config, bundle, name, options),
        "sandbox": "none" if bundle.trusted else choose(config.sandbox).name,
        "limits": {**default_limits(config, name), **options.limits()},
    }
    test_command = test_command_of(config, name, options)
    if test_command:
        fields["testCommand"] = test_command
    workspace = inspect_workspace(bundle, name, thread, options, now_ms)
    if workspace is not None:
        from uncaged_agents.workspace.checkout import branch_exists, has_commit

        repository = Path(str(workspace["repository"]))
        if branch_exists(repository, str(workspace["branch"]), options.environment):
            raise RefusedError(f"{repository} has a branch {workspace['branch']} already; rename or delete it, then try again")
        fields["workspace"] = workspace
        if claimed is not None and has_commit(repository, claimed, options.environment):
            fields["snapshot"] = claimed
    return fields


def _pin(binding: Mapping[str, Any], thread: ThreadId, store: Store, options: RunOptions) -> None:
    """Keep git from collecting the commit that the thread's worktree will be made from."""
    from uncaged_agents.workspace import Workspace

    workspace = Workspace.of(binding, store, thread, environment=options.environment)
    if workspace is not None:
        workspace.pin(str(binding.get("snapshot") or workspace.base))


def _check_params(bundle: Bundle, params: Mapping[str, object], config: Config, options: RunOptions) -> None:
    """Refuse parameters that this machine would read differently: the bundle got them as they are, and so does its policy."""
    settled = checked_params(bundle, params, config, options)
    for key, value in settled.items():
        if key not in params or params[key] != value:
            raise RefusedError(
                f"the parameter {key!r} of the imported thread is {_short(params.get(key))}, which means {_short(value)} here; "
                f"start a new thread: uncaged-workflow run {bundle.descriptor.name}"
            )


def _last_commit(steps: Sequence[Mapping[str, object]]) -> str | None:
    from uncaged_agents.workspace import last_snapshot

    found = last_snapshot(steps)
    return found if found is not None and COMMIT.fullmatch(found) else None


def _sentences(bundle: Bundle, start: Mapping[str, Any], history: History, fields: Mapping[str, Any], kept: int) -> Iterator[str]:
    """Say what goes on, from what, and who and what of this machine takes part in it."""
    steps = f"{kept} step{'' if kept == 1 else 's'}"
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
        kind = "path" if isinstance(declared, Mapping) and declared.get("format") == PATH else "parameter"
        yield f"the {kind} {key!r} from elsewhere: {_short(value)}"
    yield from _agent_sentences(fields["agents"])
    yield from _workspace_sentences(fields)
    yield "limits: " + ", ".join(f"{name} {value:.15g}" for name, value in fields["limits"].items())
    yield from (f"by its policy: {sentence}" for sentence in widening(None, bundle.descriptor.policy))


def _agent_sentences(agents: Mapping[str, Any]) -> Iterator[str]:
    bound = {"all roles": agents.get("default"), **agents.get("roles", {})}
    for role, agent in bound.items():
        if agent:
            argv = agent["settings"].get("argv")
            program = f" ({shlex.join(map(str, argv))})" if isinstance(argv, list) else ""
            yield f"agent for {role}: {agent['name']}{program}: {agent['reason']}"


def _workspace_sentences(fields: Mapping[str, Any]) -> Iterator[str]:
    workspace = fields.get("workspace")
    if workspace is None:
        return
    yield f"workspace: {workspace['repository']}, on the branch {workspace['branch']}"
    if "snapshot" in fields:
        yield f"its files: the commit {fields['snapshot']}, which the last step names and the repository has"
    else:
        yield f"its files: the commit {workspace['base']} of the repository; what the steps left elsewhere is not in it"
    if workspace["links"]:
        yield f"linked into it: {', '.join(workspace['links'])}"
    yield f"tests are run with: {fields['testCommand']}" if "testCommand" in fields else "tests are run as the repository suggests"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text):,} characters)"
    return json.dumps(shown, ensure_ascii=False)
