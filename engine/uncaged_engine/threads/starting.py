"""Start record of a thread. The thread exists once the record is on disk; all checks come before
that.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle
from uncaged_bundles.version import __version__

from ..door.preparing import NewThread, RunOptions
from ..effect_kinds import KNOWN
from ..journal import lines
from ..journal.blobs import BlobDirectory
from ..journal.codec import encode
from ..sandbox.mechanism import choose
from ..settings.config import Config
from .preparing import prepare, secure

ENTROPY_BYTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Sources of time and randomness; tests pass their own."""

    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    entropy: Callable[[int], bytes] = os.urandom


def granted_bundle(store: Store, registry: Registry, bundle_hash: BundleHash) -> Bundle:
    """Load a bundle whose policy a person has granted.

    Raises:
        RefusedError: it was not granted on this machine.
    """
    bundle = store.load_bundle(bundle_hash, KNOWN)
    if not registry.granted(bundle):
        raise RefusedError(
            f"bundle {bundle_hash} ({bundle.descriptor.name}) asks for effects that were not granted on this machine; "
            f"`uncaged-workflow add {bundle.descriptor.name} FILE --accept` grants them"
        )
    return bundle


def new_start(
    *,
    store: Store,
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
    """Validate the arguments, compose a start record, and secure what it names.

    Raises:
        UsageError, SandboxUnavailable, EnvironmentLacks: the thread cannot start; nothing was
            written.
    """
    settled = checked_params(bundle, params, config, options)
    require_characters(prompt, settled)
    now = chance.clock_ms()
    thread = thread or new_thread_id(now, chance.entropy(ENTROPY_BYTES))
    new = NewThread(
        thread_id=thread,
        flow=name,
        bundle=bundle,
        store=store,
        config=config,
        options=options,
        now_ms=now,
    )
    prepared = prepare(new)
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
                **default_limits(config, name, bundle),
                **options.recorded(),
                "threadId": thread,
                "startedAt": now,
                "seed": int.from_bytes(chance.entropy(6), "big"),
            },
        },
        "agents": prepared.pop("agents", {}),
        "sandbox": "none" if bundle.trusted else choose(config.sandbox).name,
    }
    if parent is not None:
        start["parent"] = dict(parent)
    test_command = test_command_of(config, name, options)
    if test_command:
        start["testCommand"] = test_command
    start.update(prepared)
    secure(new, start, ())
    return thread, start


def require_characters(prompt: str, params: Mapping[str, object]) -> None:
    """Refuse text that is none in UTF-8: half of a pair, which JSON can hold.

    Raises:
        UsageError: the prompt or a parameter has some.
    """
    for name, value in (("the prompt", prompt), *params.items()):
        try:
            encode(value).encode()
        except UnicodeEncodeError as exc:
            raise UsageError(
                f"{name} has half of a surrogate pair ({exc.object[exc.start]!a}), which is no character; leave it out"
            ) from None


def test_command_of(config: Config, name: str, options: RunOptions) -> str | None:
    """Return the command that runs tests: the caller's, else the flow's, else config's."""
    flow = config.flows.get(name)
    return options.test_command or (flow and flow.test_command) or config.test_command


def default_limits(config: Config, name: str, bundle: Bundle) -> dict[str, float]:
    """Return the limits that apply without the caller's: the flow's own in config, else config's.
    Of the times of config and of the bundle, the shorter applies.
    """
    own: Any = bundle.descriptor.raw.get("maxSeconds")
    seconds = [value for value in (config.limits.max_seconds, own) if value is not None]
    flow = config.flows.get(name)
    rounds, steps = (flow.max_rounds, flow.max_steps) if flow else (None, None)
    more = {
        "maxCost": config.limits.max_cost,
        "maxTokens": config.limits.max_tokens,
        "maxSeconds": min(seconds, default=None),
    }
    return {
        "maxRounds": config.limits.max_rounds if rounds is None else rounds,
        "maxSteps": config.limits.max_steps if steps is None else steps,
        "maxJournalBytes": config.limits.max_journal_bytes,
        **{key: value for key, value in more.items() if value is not None},
    }


def start_line(store: Store, start: Mapping[str, object], now_ms: int) -> bytes:
    """Return the open start record; parameters too large for a line go to a blob."""
    body = lines.start(start, now_ms)
    if len(body) <= lines.SPILL_BYTES:
        return body
    parameters = encode(start["parameters"]).encode()
    name = BlobDirectory(store.blobs).put(parameters)
    return lines.start(lines.spill(start, "parameters", name, len(parameters)), now_ms)


def checked_params(
    bundle: Bundle, params: Mapping[str, object], config: Config, options: RunOptions
) -> dict[str, object]:
    """Return the parameters as the bundle gets them.

    Raises:
        RefusedError: the flow is only kept, not run. UsageError: a parameter breaks a rule of the
            descriptor's JSON Schema.
    """
    descriptor = bundle.descriptor
    language = descriptor.raw.get("unsupported")
    if language:
        subject = "browser" if descriptor.kind == "web" else "api"
        raise RefusedError(
            f"{descriptor.name} is written in {language}, which is not run here; write it as a Python script, "
            f"async def execute({subject}, params), then: uncaged-workflow edit {descriptor.name} --script FILE.py"
        )
    if not descriptor.parameters and not params:
        return {}
    from .parameters import settle

    environment = config.for_agents(options.environment)
    return settle(
        descriptor.name,
        descriptor.parameters,
        params,
        environment=environment,
        directory=options.directory,
    )
