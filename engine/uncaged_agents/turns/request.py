"""Request to a role's agent, composed from the effect's body, the thread's records and the agent's
binding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from uncaged_bundles import shapes
from uncaged_bundles.contract import RoleSpec
from uncaged_bundles.limits import RoleLimits
from uncaged_bundles.rights import Rights
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.agents import AgentRequest, EffectTools
from uncaged_engine.door.bodies import Seconds
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.door.traces import AgentTrace
from uncaged_engine.services import secrets
from uncaged_engine.services.journal import InfoLog
from uncaged_engine.services.processes import MARK
from uncaged_engine.services.registry import handler_for
from uncaged_engine.services.settings import NOTHING
from uncaged_models.prompts.prompt import build_prompt

from ..workspace import Workspace
from .binding import AgentBinding

if TYPE_CHECKING:
    from ..tools.extract import ExtractTool
    from ..tools.flows import FlowTools


def _limits_by_kind(value: object, path: shapes.Path) -> dict[str, Mapping[str, object]]:
    return {
        kind: shapes.mapping(limits, (*path, kind))
        for kind, limits in shapes.mapping(value, path).items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleBody:
    """Body of a ``role`` effect. prompt: text for this step. within: for effect kinds among its
    tools, limits inside those of the policy.
    """

    name: str
    prompt: str | None = None
    timeout_s: Seconds = None
    within: Annotated[Mapping[str, Mapping[str, object]] | None, _limits_by_kind] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleCall:
    """Checked body of a role effect, in its thread. task, params: the thread's own. steps: all of
    its finished ones.
    """

    role: RoleSpec
    extra: str | None
    timeout_s: float
    effects: tuple[EffectTools, ...]
    task: str
    params: Mapping[str, object]
    steps: Sequence[Mapping[str, object]]

    @property
    def role_steps(self) -> list[Mapping[str, object]]:
        return [step for step in self.steps if "role" in step]


def role_call(asked: RoleBody, context: EffectContext) -> RoleCall:
    """Return the checked body of a role effect; ValueError says why the role cannot be called."""
    roles = context.bundle.descriptor.roles
    if asked.name not in roles:
        raise ValueError(
            f"the descriptor has no role {asked.name!r} (its roles: {', '.join(sorted(roles)) or 'none'})"
        )
    if is_part(context) and workspace_level(context.bundle) == "write":
        raise ValueError(
            "roles that write in the workspace cannot run side by side; yield them one after the other"
        )
    granted_s = RoleLimits.of(context.bundle.descriptor.policy.limits.get("role", {})).timeout_s
    bounds = (asked.timeout_s, granted_s, context.config.limits.agent_s)
    shortest = min(float(bound) for bound in bounds if bound is not None and bound > 0)
    parameters = cast("Mapping[str, object]", context.start["parameters"])
    return RoleCall(
        role=roles[asked.name],
        extra=asked.prompt,
        timeout_s=shortest,
        effects=effects_of(asked.within or {}, context),
        task=str(parameters.get("prompt", "")),
        params=cast("Mapping[str, object]", parameters.get("params", NOTHING)),
        steps=context.steps(),
    )


def agent_request(
    call: RoleCall,
    binding: AgentBinding,
    *,
    workspace: Workspace | None,
    scratch: Path,
    context: EffectContext,
    progress: Callable[[Mapping[str, object]], None],
    trace: AgentTrace,
) -> AgentRequest:
    """Return the request to the agent of a binding."""
    role, rights, steps = call.role, rights_of(context.bundle), call.steps
    environment = context.config.for_agents(context.environment)
    test_command = context.start.get("testCommand")
    return AgentRequest(
        thread_id=context.thread_id,
        key=context.key,
        role=role,
        prompt=prompt_of(call, context),
        task=call.task,
        params=call.params,
        steps=call.role_steps,
        worktree=workspace.directory if workspace is not None else None,
        environment={
            **(workspace.for_children(environment) if workspace is not None else environment),
            MARK: context.key,
            **trace_variables(context),
        },
        timeout_s=call.timeout_s,
        attempt=context.attempt,
        calls=sum(map(calls_of, steps)),
        role_calls=sum(calls_of(step) for step in steps if role_of(step) == role.name),
        repair=None,
        session=session_of(role.name, binding.name, context, steps),
        config=binding.settings,
        test_command=test_command if isinstance(test_command, str) else None,
        scratch=scratch,
        cancel=context.cancel,
        progress=progress,
        remark=remark_of(binding, context),
        redact=lambda value: secrets.redact(value, binding.known),
        sandbox=context.config.sandbox,
        reply=context.answer,
        attended=context.start.get("attended") is True,
        writable=workspace_level(context.bundle) == "write",
        rights=rights,
        flows=flows_of(context, rights.flows) if rights.flows else None,
        effects=call.effects,
        trace=trace,
        observer=context.observer,
        extract=extract_of(context) if context.config.extractor is not None else None,
        reads=tuple(workspace.repository / name for name in workspace.links)
        if workspace is not None
        else (),
    )


def trace_variables(context: EffectContext) -> dict[str, str]:
    """Return the variables with which a process continues the trace of an observed effect."""
    headers = {} if context.observer is None else context.observer.headers()
    return {name.upper(): value for name, value in headers.items()}


def prompt_of(call: RoleCall, context: EffectContext) -> str:
    """Return the whole prompt of a step, with as much of the history as the config allows."""
    return build_prompt(
        role=call.role,
        task=call.task,
        params=call.params,
        steps=call.role_steps,
        extra=call.extra,
        note=context.note,
        max_history_characters=context.config.limits.history_chars,
        rights=rights_of(context.bundle),
    )


def remark_of(binding: AgentBinding, context: EffectContext) -> Callable[[str], None]:
    """Return the function that writes an agent's remark to the thread's debug log."""
    info = InfoLog(
        context.store.info_path(context.bundle.hash, context.thread_id), context.clock_ms
    )
    return lambda text: info.note("6RZKQ0WD", binding.clean(f"{binding.name}: {text}"))


def flows_of(context: EffectContext, names: Sequence[str]) -> FlowTools:
    from ..tools.flows import flow_tools  # few roles have flows as tools

    return flow_tools(context, names)


def effects_of(
    within: Mapping[str, Mapping[str, object]], context: EffectContext
) -> tuple[EffectTools, ...]:
    """Return the operations of effect kinds that are tools of the role.

    Raises:
        ValueError: the policy has no limits for a kind, it has no tools, or its limits in *within*
            are wrong.
    """
    kinds = rights_of(context.bundle).effects
    for kind in within:
        if kind not in kinds:
            raise ValueError(f"within: effect:{kind} is none of its tools")
    found: list[EffectTools] = []
    if (missing := missing_effect(context.bundle)) is not None:
        raise ValueError(missing)
    for kind in kinds:
        try:
            tools = handler_for(kind).tools(within.get(kind, {}), context)
        except shapes.ShapeError as exc:
            raise ValueError(f"within: {exc}") from exc
        if tools is None:
            raise ValueError(f"the effect {kind!r} has no operations that are tools")
        found.append(tools)
    return tuple(found)


def missing_effect(bundle: Bundle) -> str | None:
    """Return why an effect kind that is a tool cannot be used: its limits are not in the policy."""
    for kind in rights_of(bundle).effects:
        if kind not in bundle.descriptor.policy.limits:
            return f"the policy has no {kind!r} beside the tool effect:{kind}"
    return None


def extract_of(context: EffectContext) -> ExtractTool:
    from ..tools.extract import ExtractTool  # an extractor is rarely configured

    return ExtractTool(context)


def session_of(
    role: str, agent: str, context: EffectContext, steps: Sequence[Mapping[str, object]]
) -> str | None:
    """Return the session in which the agent last answered for the role, if that session holds
    nothing beyond the journal.

    An interrupted attempt may have left more in it, and a fork's source may have continued it.
    """
    if context.attempt > 1 and context.answer is None:
        return None
    source = context.start.get("forkFrom")
    inherited = source.get("seq", 0) if isinstance(source, Mapping) else 0
    last = next((step for step in reversed(steps) if role_of(step) == role), None)
    if (
        last is None
        or last.get("by") != agent
        or not isinstance(last.get("seq"), int)
        or cast("int", last["seq"]) <= inherited
    ):
        return None
    session = last.get("session")
    return session if isinstance(session, str) else None


def role_of(step: Mapping[str, object]) -> object:
    """Return the role whose agent made a step, failed ones included; None for any other step."""
    error = step.get("error")
    return (
        error.get("role")
        if isinstance(error, Mapping)
        else step.get("role")
        if step.get("by") != "bundle"
        else None
    )


def calls_of(step: Mapping[str, object]) -> int:
    """Return how many answers an agent gave for a step."""
    if role_of(step) is None:
        return 0
    holder = step.get("error") or step.get("usage")
    calls = holder.get("calls", 1) if isinstance(holder, Mapping) else 1
    return calls if isinstance(calls, int) else 1


def rights_of(bundle: Bundle) -> Rights:
    return Rights.of(bundle.descriptor.policy.limits.get("role", {}))


def workspace_level(bundle: Bundle) -> str:
    return str(bundle.descriptor.policy.limits.get("role", {}).get("workspace", "none"))


def is_part(context: EffectContext) -> bool:
    """Return whether this is a part of another effect: its key ends in ``seq.index``."""
    return "." in context.key.rpartition("/")[2]
