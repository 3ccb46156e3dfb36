"""Roles, agent requests, and a harness that makes contexts for effect handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count
from pathlib import Path
from typing import Any

from uncaged_bundles.contract import RoleSpec
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.door.agents import AgentRequest
from uncaged_engine.door.effects import Cancel, EffectContext, ThreadContext
from uncaged_engine.door.outcomes import Outcome
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.settings.config import Config

THREAD = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"enum": ["done", "stuck"], "description": "how it went"},
        "files": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["status"],
    "additionalProperties": False,
}


ROLE = {
    "description": "A role.",
    "systemPrompt": "You work.",
    "extractPrompt": "Say how it went.",
    "schema": SCHEMA,
}
"""A role of a bundle's descriptor."""


def role_spec(name: str = "coder", schema: Mapping[str, object] | None = None) -> RoleSpec:
    return RoleSpec(
        name=name,
        description=f"The {name}.",
        system_prompt=f"You are the {name}.",
        extract_prompt="Say how it went.",
        schema=schema if schema is not None else SCHEMA,
    )


def role_bundle(*names: str, policy: Mapping[str, object] | None = None) -> Bundle:
    """A bundle with these roles, all of the same schema."""
    descriptor = {
        "contract": 1,
        "name": "demo",
        "description": "A demo.",
        "kind": "workflow",
        "roles": dict.fromkeys(names or ("planner", "coder"), ROLE),
        "policy": {"role": {"workspace": "write"}} if policy is None else policy,
    }
    return read_bundle(
        f"descriptor = {descriptor!r}\ndef run(input, options):\n    yield {{'null': {{}}}}\n".encode(),
        KNOWN,
    )


def request(tmp_path: Path, **more: Any) -> AgentRequest:
    usual: dict[str, Any] = {
        "thread_id": THREAD,
        "key": f"{THREAD}/1",
        "role": role_spec(),
        "prompt": "Do it.",
        "task": "Do it.",
        "params": {},
        "steps": [],
        "worktree": tmp_path,
        "environment": {},
        "timeout_s": 30.0,
        "attempt": 1,
        "calls": 0,
        "role_calls": 0,
        "repair": None,
        "session": None,
        "config": {},
        "test_command": None,
        "scratch": tmp_path,
        "cancel": Cancel(),
        "progress": lambda fields: None,  # noqa: ARG005 - no followers
    }
    return AgentRequest(**(usual | more))


def no_part(index: int, kind: str, body: object) -> Outcome:
    raise AssertionError(f"sub-step {index} {kind} {body}: a role has none")


def clock() -> int:
    return 1_714_963_200_000


@dataclass(slots=True, kw_only=True)
class EffectHarness:
    """Harness for effect handlers: makes the contexts of one thread and records what handlers
    report.
    """

    store: Store
    bundle: Bundle
    start: Mapping[str, object]
    environment: Mapping[str, str]
    config: Config = field(default_factory=Config)
    steps: list[dict[str, object]] = field(default_factory=list)
    attempts: list[Mapping[str, object]] = field(default_factory=list)
    progress: list[Mapping[str, object]] = field(default_factory=list)
    paths: dict[str, object] = field(default_factory=dict)
    cancel: Cancel = field(default_factory=Cancel)
    part: Callable[[int, str, object], Outcome] = no_part

    def context(self, seq: int, **more: Any) -> EffectContext:
        """Make a context. more: other values for its fields, or for those of its thread."""
        shared = {one.name: more.pop(one.name) for one in fields(ThreadContext) if one.name in more}
        thread = ThreadContext(
            store=self.store,
            bundle=self.bundle,
            config=self.config,
            thread_id=THREAD,
            start=self.start,
            steps=self.finished,
            environment=self.environment,
            directory=Path("/nonexistent"),
            remember_paths=self.remember_paths,
            left=dict,
            clock_ms=clock,
        )
        context = EffectContext(
            thread=replace(thread, **shared),
            recorder=self,
            seq=seq,
            kind="role",
            part=None,
            attempt=1,
            key=f"{THREAD}/{seq}",
            intended_ms=0,
            cancel=self.cancel,
            note=None,
            redo=False,
            answer=None,
            done={},
            numbers=count(2),
        )
        return replace(context, **more)

    def record_attempt(self, _context: EffectContext, fields: Mapping[str, object]) -> None:
        self.attempts.append(fields)

    def report_progress(self, _context: EffectContext, fields: Mapping[str, object]) -> None:
        self.progress.append(fields)

    def perform_part(self, _context: EffectContext, index: int, kind: str, body: object) -> Outcome:
        return self.part(index, kind, body)

    def remember_paths(self, found: Mapping[str, object]) -> Mapping[str, object]:
        self.paths = {**found, **self.paths}
        return self.paths

    def finished(self) -> Sequence[Mapping[str, object]]:
        return list(self.steps)
