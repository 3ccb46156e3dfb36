"""The role effect: asks the agent that is bound to the role, extracts data from its answer, and
snapshots its changes.

Body: ``{"name": role, "prompt": text for this step?, "timeout_s": seconds?}``. The step's
``content`` is the answer without the block that carried the data (``meta``); unusable answers are
whole in their attempt lines.

Rule 1: an agent works only in the thread's worktree, and an attempt after the first starts from the
last snapshot.
Rule 2: answer or failure, the worktree is snapshotted before the outcome is returned: each finished
step has its files.
Rule 3: no secret that was handed to an agent is in anything that is returned or recorded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from uncaged_bundles.errors import EnvironmentLacks, NotFoundError, UsageError
from uncaged_bundles.limits import RoleLimits
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.agents import AgentFailed, AgentWaits
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void, Wait
from uncaged_engine.services.processes import full_disk, kill_leftovers, ledger_of, named_in
from uncaged_models.prompts.extract import checker

from .kinds import factory_of
from .slots import AgentSlot, SlotCancelled, slots_directory
from .turns.asking import RoleReply, add_usage, ask
from .turns.claims import Claims
from .turns.question import (
    AgentBinding,
    Question,
    RoleBody,
    bind,
    compose,
    is_part,
    question_of,
    redacted,
    workspace_level,
)
from .workspace import Workspace, last_snapshot


class RoleHandler(Handler):
    kind = "role"
    limits = RoleLimits

    def rule(self, body: object, bundle: Bundle) -> Rule:
        del body
        return "repeat" if workspace_level(bundle) == "none" else "restore"

    def read_answer(self, wait: Mapping[str, object], value: object) -> object:
        fields = wait.get("fields")
        if not isinstance(fields, Mapping):
            return value
        from .turns.answers import read_answer

        return read_answer(fields, value)

    def perform(self, body: object, context: EffectContext) -> Outcome:
        asked = read_body("role", RoleBody, body)
        if isinstance(asked, Failure):
            return asked
        try:
            question = question_of(asked, context)
        except ValueError as exc:
            return Failure.of("effect", f"role: {exc}")
        try:
            return perform_role(question, context)
        except (UsageError, NotFoundError) as exc:
            # the binding's settings, an agent that is gone: a person fixes it and resumes
            raise EnvironmentLacks(str(exc)) from exc


def perform_role(question: Question, context: EffectContext) -> Outcome:
    binding = bind(question.role.name, context)
    scratch = context.store.private(context.thread_id)
    scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    latest = last_snapshot(question.steps)
    workspace = prepare(context, scratch, latest)
    outcome = consult(question, binding, workspace, scratch, context, latest=latest)
    if (
        isinstance(outcome, Void | Wait)
        or workspace is None
        or workspace_level(context.bundle) != "write"
    ):
        return outcome
    snapshot = workspace.snapshot(context.seq, latest, now_ms=context.clock_ms())
    # crash here: the snapshot is made, no line names it; the next attempt starts from the one
    # before it
    if isinstance(outcome, Failure):
        return Failure(error={**outcome.error, "snapshot": snapshot})
    return Answer(fields={**outcome.fields, "snapshot": snapshot})


def prepare(context: EffectContext, scratch: Path, latest: str | None) -> Workspace | None:
    """Return the thread's workspace as its last finished step left it, with nothing of an earlier
    attempt in it or still running.
    """
    level = workspace_level(context.bundle)
    workspace = (
        Workspace.of(
            context.start, context.store, context.thread_id, environment=context.environment
        )
        if level != "none"
        else None
    )
    if level != "none" and workspace is None:
        raise EnvironmentLacks(
            f"thread {context.thread_id} was started without a workspace, but its roles need one; run it in a repository"
        )
    asked = scratch / "asked"
    asked_before = context.attempt > 1 or (
        asked.exists() and asked.read_text("utf-8") == context.key
    )
    # a person's own work in the worktree stays
    again = asked_before and context.answer is None and not is_part(context)
    if again:
        kill_leftovers(scratch, context.thread_id)
    elif ledger_of(scratch, context.key).exists():  # a crash left this part of a step open
        kill_leftovers(scratch, context.key)
    if workspace is not None:
        workspace.ensure(latest, now_ms=context.clock_ms())
        if again:
            workspace.restore(latest)
    if not is_part(context):
        # a retry inside the same attempt is a further attempt, too
        asked.write_text(context.key, "utf-8")
    return workspace


def consult(
    question: Question,
    binding: AgentBinding,
    workspace: Workspace | None,
    scratch: Path,
    context: EffectContext,
    *,
    latest: str | None,
) -> Outcome:
    """Ask the agent and return the outcome. latest: the snapshot from which each attempt starts."""
    role = question.role.name

    def progress(fields: Mapping[str, object]) -> None:
        seen = fields if workspace is None else seen_from(workspace.tree, fields)
        context.progress(redacted({"role": role, "agent": binding.name, **seen}, binding))

    def record(fields: Mapping[str, object]) -> None:
        context.record_attempt(redacted(fields, binding))

    def restore() -> None:
        # a person's own work stays
        if workspace is not None and context.answer is None and not is_part(context):
            workspace.restore(latest)

    try:
        agent = factory_of(binding.use)(binding.settings)
        request = compose(
            question,
            binding,
            workspace=workspace,
            scratch=scratch,
            context=context,
            progress=progress,
        )
        progress({})
        with AgentSlot(
            slots_directory(os.environ), context.config.limits.agents, context.cancel, progress
        ) as slot:
            if request.flows is not None:
                request.flows.lent = slot.released
            claims = Claims(workspace=workspace, request=request, latest=latest)
            asked = ask(
                agent, request, checker(question.role.schema, claims.problem), record, restore
            )
        if asked.meta is None and not context.cancel.requested:
            asked = extracted(asked, question, binding, context, record, claims=claims)
    except SlotCancelled:
        return Void(
            word="killed", message=f"killed while {binding.name} waited to answer for {role!r}"
        )
    except AgentWaits as exc:
        return Wait(details=redacted({"role": role, **exc.details}, binding))
    except AgentFailed as exc:
        worktree = [] if workspace is None else [workspace.tree]
        shortage = named_in(str(exc), str(exc.more.get("stderr", ""))) or full_disk(
            [scratch, *worktree]
        )
        if shortage is not None:
            raise EnvironmentLacks(
                clean(f"{binding.name}: {shortage}", binding), remedy="make room or repair the disk"
            ) from None
        error = {
            "kind": exc.kind,
            "message": f"{binding.name}: {exc}",
            "role": role,
            "by": binding.name,
            **exc.more,
        }
        outcome: Answer | Failure = Failure(error=redacted(error, binding))
    except EnvironmentLacks as exc:
        raise EnvironmentLacks(
            clean(exc.what, binding), remedy=clean(exc.remedy, binding)
        ) from None
    except (UsageError, NotFoundError) as exc:
        # settings that are wrong by now, an agent that is gone
        raise EnvironmentLacks(clean(str(exc), binding)) from None
    else:
        outcome = outcome_of(asked, role, binding)
    # a whole answer that came first is kept, and paid for once
    if context.cancel.requested and not isinstance(outcome, Answer):
        return Void(word="killed", message=f"killed while {binding.name} answered for {role!r}")
    return outcome


def seen_from(tree: Path, fields: Mapping[str, object]) -> dict[str, object]:
    """Return a report with tool and file relative to the worktree, whose own path means nothing to
    followers.
    """
    named = {
        name: text.replace(f"{tree}/", "")
        for name in ("tool", "file")
        if isinstance(text := fields.get(name), str)
    }
    return {**fields, **named}


def clean(text: str, binding: AgentBinding) -> str:
    """Return *text* without the agent's secrets."""
    return str(redacted({"text": text}, binding)["text"])


def extracted(
    asked: RoleReply,
    question: Question,
    binding: AgentBinding,
    context: EffectContext,
    record: Callable[[Mapping[str, object]], None],
    *,
    claims: Claims,
) -> RoleReply:
    """Extract the data from the agent's last answer, without secrets, by the configured model."""
    if context.config.extractor is None:
        return asked
    from uncaged_models.extractor import extract_data

    role = question.role
    extraction = extract_data(
        clean(asked.content, binding),
        role.schema,
        role.extract_prompt,
        context,
        timeout_s=question.timeout_s,
        record=record,
        progress=lambda fields: context.progress({"role": role.name, **fields}),
    )
    usage = {**asked.usage}
    add_usage(usage, {name: value for name, value in extraction.usage.items() if name != "model"})
    wrong = (
        checker(role.schema, claims.problem)(extraction.meta)
        if extraction.fits
        else [extraction.problem]
    )
    problems = (
        asked.problems
        if not wrong
        else (*asked.problems, f"the extractor {context.config.extractor!r}: {'; '.join(wrong)}")
    )
    return replace(
        asked,
        meta=None if wrong else cast("Mapping[str, object]", extraction.meta),
        problems=problems,
        usage=usage,
    )


def outcome_of(asked: RoleReply, role: str, binding: AgentBinding) -> Answer | Failure:
    usage = {**asked.usage, **({"calls": asked.calls} if asked.calls > 1 else {})}
    more: dict[str, object] = {"usage": usage} if usage else {}
    if isinstance(asked.session, str):
        more["session"] = asked.session
    if asked.meta is not None:
        return Answer(
            fields=redacted(
                {
                    "role": role,
                    "content": asked.content,
                    "meta": asked.meta,
                    "by": binding.name,
                    **more,
                },
                binding,
            )
        )
    message = f"{binding.name} gave {asked.calls} answers for {role!r} and none could be used; the last one: {asked.problems[-1]}"
    attempts = [{"problem": problem} for problem in asked.problems]
    error = {
        "kind": "extraction",
        "message": message,
        "role": role,
        "by": binding.name,
        "calls": asked.calls,
        "attempts": attempts,
        **more,
    }
    return Failure(error=redacted(error, binding))
