"""A thread exists once its start record is on disk; everything that can be refused is refused before that."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.rights import Rights
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle
from uncaged_bundles.version import __version__

from ..journal import lines
from ..journal.blobs import Blobs
from ..journal.codec import encode
from ..known_effects import KNOWN
from ..sandbox.mechanism import choose
from ..settings.config import Config

ENTROPY_BYTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a thread is started, besides its prompt and parameters.

    max_rounds, max_steps: None takes the config's. max_cost (US dollars), max_tokens, max_seconds: None binds nothing.
    max_journal_bytes: of the journal and the blobs it names. bundle_seconds: for one computation of the bundle; None takes the config's.
    agents: agent name by role, "" for the default one.
    workspace: the repository directory (None: *directory*). links: ignored directories to link into the worktree.
    directory, environment: the caller's; children get them, the disk never does.
    """

    max_rounds: int | None = None
    max_steps: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_journal_bytes: int | None = None
    bundle_seconds: float | None = None
    agents: Mapping[str, str] = field(default_factory=dict)
    workspace: Path | None = None
    include_changes: bool = False
    links: tuple[str, ...] = ()
    test_command: str | None = None
    directory: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def binds_workspace(self) -> bool:
        """Whether the caller chose where roles work or how tests are run."""
        return self.workspace is not None or self.include_changes or bool(self.links) or self.test_command is not None

    @property
    def binds(self) -> bool:
        """Whether the caller chose what a binding holds besides limits."""
        return bool(self.agents) or self.binds_workspace

    def limits(self) -> dict[str, float]:
        """The limits that were given, as a journal names them."""
        named = {
            "maxRounds": self.max_rounds,
            "maxSteps": self.max_steps,
            "maxCost": self.max_cost,
            "maxTokens": self.max_tokens,
            "maxSeconds": self.max_seconds,
            "maxJournalBytes": self.max_journal_bytes,
            "bundleSeconds": self.bundle_seconds,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Where time and randomness come from; tests bring their own."""

    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    entropy: Callable[[int], bytes] = os.urandom


def granted_bundle(store: Store, registry: Registry, bundle_hash: BundleHash) -> Bundle:
    """Load a bundle that a person allowed to do what its policy asks for.

    Raises:
        RefusedError: nobody granted it on this machine.
    """
    bundle = store.load_bundle(bundle_hash, KNOWN)
    if not registry.granted(bundle):
        raise RefusedError(
            f"bundle {bundle_hash} ({bundle.descriptor.name}) asks for effects that nobody granted here; "
            f"`uncaged-workflow add {bundle.descriptor.name} FILE --accept` grants them"
        )
    return bundle


def new_start(
    *,
    thread: ThreadId | None,
    parent: Mapping[str, object] | None,
    config: Config,
    bundle: Bundle,
    name: str,
    prompt: str,
    params: Mapping[str, object],
    options: RunOptions,
    chance: Chance,
) -> tuple[ThreadId, dict[str, object]]:
    """Check the caller's words and compose a start record.

    Raises:
        UsageError, SandboxUnavailable, EnvironmentLacks: what is in the way, before anything is written.
    """
    settled = checked_params(bundle, params, config, options)
    now = chance.clock_ms()
    thread = thread or new_thread_id(now, chance.entropy(ENTROPY_BYTES))
    start: dict[str, object] = {
        "engine": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "name": name,
        "hash": bundle.hash,
        "threadId": thread,
        "parameters": {
            "prompt": prompt,
            "params": settled,
            "options": {
                **default_limits(config, name),
                **options.limits(),
                "threadId": thread,
                "startedAt": now,
                "seed": int.from_bytes(chance.entropy(6), "big"),
            },
        },
        "agents": bind_agents(config, bundle, name, options),
        "sandbox": "none" if bundle.trusted else choose(config.sandbox).name,
    }
    if parent is not None:
        start["parent"] = dict(parent)
    test_command = test_command_of(config, name, options)
    if test_command:
        start["testCommand"] = test_command
    workspace = inspect_workspace(bundle, name, thread, options, now)
    if workspace is not None:
        start["workspace"] = workspace
    return thread, start


def test_command_of(config: Config, name: str, options: RunOptions) -> str | None:
    """How tests are run: as this caller says, else the flow's setting, else config's."""
    flow = config.flows.get(name)
    return options.test_command or (flow and flow.test_command) or config.test_command


def default_limits(config: Config, name: str) -> dict[str, float]:
    """What binds a flow's threads when nothing else was said: config's limits, the flow's own first."""
    flow = config.flows.get(name)
    rounds, steps = (flow.max_rounds, flow.max_steps) if flow else (None, None)
    more = {"maxCost": config.limits.max_cost, "maxTokens": config.limits.max_tokens, "maxSeconds": config.limits.max_seconds}
    return {
        "maxRounds": config.limits.max_rounds if rounds is None else rounds,
        "maxSteps": config.limits.max_steps if steps is None else steps,
        "maxJournalBytes": config.limits.max_journal_bytes,
        **{key: value for key, value in more.items() if value is not None},
    }


def start_line(store: Store, start: Mapping[str, object], now_ms: int) -> bytes:
    """The open start record; parameters too large for a line go to a blob."""
    body = lines.start(start, now_ms)
    if len(body) <= lines.SPILL_BYTES:
        return body
    parameters = encode(start["parameters"]).encode()
    name = Blobs(store.blobs).put(parameters)
    return lines.start(lines.spill(start, "parameters", name, len(parameters)), now_ms)


def bind_agents(config: Config, bundle: Bundle, name: str, options: RunOptions) -> dict[str, object]:
    """Return which agent answers for which role, and why; nothing for a bundle that may ask no agent.

    Raises:
        RefusedError: an agent was given for a role that the bundle plays itself. As `agents.choose.bind`.
    """
    descriptor = bundle.descriptor
    if not descriptor.asked_roles and not any(options.agents):
        return {}
    own = next((role for role in options.agents if role in descriptor.roles and role not in descriptor.asked_roles), None)
    if own is not None:
        raise RefusedError(f'{name!r} asks no agent for {own!r}: its policy has no "role", so that the bundle itself makes these steps')
    from uncaged_agents.choose import bind

    return bind(
        config,
        flow=name,
        roles=descriptor.asked_roles,
        asked=options.agents,
        environment=options.environment,
        directory=options.directory,
        rights=Rights.of(descriptor.policy.limits.get("role", {})),
    )


def inspect_workspace(bundle: Bundle, name: str, thread: ThreadId, options: RunOptions, now_ms: int) -> Mapping[str, Any] | None:
    """The repository that the thread will work in, if its roles may use one."""
    if "workspace" not in bundle.descriptor.policy.limits.get("role", {}):
        return None
    from uncaged_agents.workspace import inspect

    return inspect(
        options.workspace or options.directory,
        flow=name,
        thread_id=thread,
        include_changes=options.include_changes,
        links=options.links,
        environment=options.environment,
        now_ms=now_ms,
    )


def pin_workspace(start: Mapping[str, object], steps: Sequence[Mapping[str, object]], store: Store, options: RunOptions) -> None:
    """Keep git from collecting the commit that the thread's worktree will be made from."""
    if "workspace" not in start:
        return
    from uncaged_agents.workspace import Workspace, last_snapshot

    workspace = Workspace.of(start, store, ThreadId(str(start["threadId"])), environment=options.environment)
    if workspace is not None:
        workspace.pin(last_snapshot(steps) or workspace.base)


def checked_params(bundle: Bundle, params: Mapping[str, object], config: Config, options: RunOptions) -> dict[str, object]:
    """Return the parameters as the bundle gets them.

    Raises:
        RefusedError: the flow is only kept, not run. UsageError: a parameter breaks a rule of the descriptor's JSON Schema.
    """
    descriptor = bundle.descriptor
    language = descriptor.raw.get("unsupported")
    if language:
        raise RefusedError(
            f"{descriptor.name} is written in {language}, which is not run here; write it as a Python script, "
            f"async def execute(api, params), then: uncaged-workflow edit {descriptor.name} --script FILE.py"
        )
    if not descriptor.parameters and not params:
        return {}
    from .parameters import settle

    environment = config.for_agents(options.environment)
    return settle(descriptor.name, descriptor.parameters, params, environment=environment, directory=options.directory)
