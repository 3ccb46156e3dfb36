"""Turn of a role: its agent is asked within a slot, and the reply or the failure becomes the step's
outcome. No outcome and no record holds a secret of the agent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from uncaged_bundles.errors import EnvironmentLacks, NotFoundError, UsageError
from uncaged_engine.door.agents import AgentFailed, AgentWaits
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void, Wait
from uncaged_engine.door.traces import AgentTrace
from uncaged_engine.services import secrets
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.services.processes import full_disk, named_in
from uncaged_models.prompts.extract import checker

from ..kinds import factory_of
from ..slots import AgentSlot, SlotCancelled, slots_directory
from ..usage import add_usage
from ..workspace import Workspace
from .binding import AgentBinding
from .claims import Claims
from .dialogue import RoleReply, ask_until_usable
from .request import RoleCall, agent_request, is_part


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTurn:
    """Attempt of an agent at a role's step. latest: the snapshot that the attempt starts from."""

    call: RoleCall
    binding: AgentBinding
    workspace: Workspace | None
    scratch: Path
    context: EffectContext
    latest: str | None
    trace: AgentTrace

    def outcome(self) -> Outcome:
        """Ask the agent and return the outcome."""
        role, name = self.call.role.name, self.binding.name
        try:
            reply = self._reply()
        except SlotCancelled:
            return Void(word="killed", message=f"killed while {name} waited to answer for {role!r}")
        except AgentWaits as exc:
            return Wait(details=self.binding.redacted({"role": role, **exc.details}))
        except AgentFailed as exc:
            outcome: Answer | Failure = self._failure(exc)
        except EnvironmentLacks as exc:
            clean = self.binding.clean
            raise EnvironmentLacks(clean(exc.what), remedy=clean(exc.remedy)) from None
        except (UsageError, NotFoundError) as exc:
            # settings that are wrong by now, an agent that is gone
            raise EnvironmentLacks(self.binding.clean(str(exc))) from None
        else:
            outcome = outcome_of(reply, role, self.binding)
        # a whole answer that came first is kept, and paid for once
        if self.context.cancel.requested and not isinstance(outcome, Answer):
            return Void(word="killed", message=f"killed while {name} answered for {role!r}")
        return self._with_trace(outcome)

    def _with_trace(self, outcome: Answer | Failure) -> Answer | Failure:
        """Return the outcome with the hash of the blob that holds the tool calls."""
        if self.trace.is_empty:
            return outcome
        name = {"trace": BlobDirectory(self.context.store.blobs).put_aside(self.trace.encoded())}
        if isinstance(outcome, Failure):
            return Failure(error={**outcome.error, **name})
        return Answer(fields={**outcome.fields, **name})

    def _reply(self) -> RoleReply:
        """Ask the agent, then if need be the extractor for the data in its last answer."""
        call, binding, context = self.call, self.binding, self.context
        agent = factory_of(binding.use)(binding.settings)
        request = agent_request(
            call,
            binding,
            workspace=self.workspace,
            scratch=self.scratch,
            context=context,
            progress=self._report,
            trace=self.trace,
        )
        self._report({})
        slots = slots_directory(os.environ)
        with AgentSlot(
            slots, context.config.limits.agents, context.cancel, self._report, context.thread.agents
        ) as slot:
            if request.flows is not None:
                request.flows.lent = slot.released
            claims = Claims(workspace=self.workspace, request=request, latest=self.latest)
            check = checker(call.role.schema, claims.problem)
            try:
                reply = ask_until_usable(agent, request, check, self._record, self._restore)
            finally:
                for tools in request.effects:
                    for name, value in tools.noted().items():
                        self.trace.note(name, value)
        if reply.meta is None and not context.cancel.requested:
            return self._extracted(reply, claims)
        return reply

    def _extracted(self, reply: RoleReply, claims: Claims) -> RoleReply:
        """Extract the data from the agent's last answer, without secrets, by the configured
        model.
        """
        context, role, extractor = self.context, self.call.role, self.context.config.extractor
        if extractor is None:
            return reply
        from uncaged_models.extractor import extract_data

        extraction = extract_data(
            self.binding.clean(reply.content),
            role.schema,
            role.extract_prompt,
            context,
            timeout_s=self.call.timeout_s,
            record=self._record,
            progress=lambda fields: context.progress({"role": role.name, **fields}),
        )
        usage = dict(reply.usage)
        counted = {name: value for name, value in extraction.usage.items() if name != "model"}
        add_usage(usage, counted)
        wrong = (
            checker(role.schema, claims.problem)(extraction.meta)
            if extraction.fits
            else [extraction.problem]
        )
        if wrong:
            problem = f"the extractor {extractor!r}: {'; '.join(wrong)}"
            return replace(reply, problems=(*reply.problems, problem), usage=usage)
        return replace(reply, meta=cast("Mapping[str, object]", extraction.meta), usage=usage)

    def _failure(self, failed: AgentFailed) -> Failure:
        """Return the failure's record.

        Raises:
            EnvironmentLacks: the disk is full, which a person has to fix.
        """
        name, message = self.binding.name, str(failed)
        shortage = named_in(message, str(failed.more.get("stderr", ""))) or full_disk(
            [self.scratch, *([] if self.workspace is None else [self.workspace.tree])]
        )
        if shortage is not None:
            raise EnvironmentLacks(
                self.binding.clean(f"{name}: {shortage}"), remedy="make room or repair the disk"
            ) from None
        role = self.call.role.name
        error = {"kind": failed.kind, "message": f"{name}: {message}", "role": role, "by": name}
        return Failure(error=self.binding.redacted({**error, **failed.more}))

    def _report(self, fields: Mapping[str, object]) -> None:
        seen = fields if self.workspace is None else relative_to(self.workspace.tree, fields)
        common = {"role": self.call.role.name, "agent": self.binding.name}
        self.context.progress(self.binding.redacted({**common, **seen}))

    def _record(self, fields: Mapping[str, object]) -> None:
        self.context.record_attempt(self.binding.redacted(fields))

    def _restore(self) -> None:
        # a person's own work stays
        if self.workspace is not None and self.context.answer is None and not is_part(self.context):
            self.workspace.restore(self.latest)


def relative_to(tree: Path, fields: Mapping[str, object]) -> dict[str, object]:
    """Return a report with tool and file relative to the worktree, whose own path means nothing to
    followers.
    """
    named = {
        name: text.replace(f"{tree}/", "")
        for name in ("tool", "file")
        if isinstance(text := fields.get(name), str)
    }
    return {**fields, **named}


def outcome_of(reply: RoleReply, role: str, binding: AgentBinding) -> Answer | Failure:
    """Return the step of a reply with data, or the failure of one without."""
    usage = {**reply.usage, **({"calls": reply.calls} if reply.calls > 1 else {})}
    more: dict[str, object] = {"usage": usage} if usage else {}
    if isinstance(reply.session, str):
        more["session"] = reply.session
    if reply.meta is not None:
        step = {"role": role, "content": reply.content, "meta": reply.meta, "by": binding.name}
        return Answer(fields=binding.redacted({**step, **more}))
    message = f"{binding.name} gave {reply.calls} answers for {role!r} and none could be used; the last one: {reply.problems[-1]}"
    error = {
        "kind": "extraction",
        "message": message,
        "role": role,
        "by": binding.name,
        "calls": reply.calls,
        "attempts": [{"problem": problem} for problem in reply.problems],
        **more,
    }
    return Failure(error=binding.redacted(error))


def new_trace(binding: AgentBinding, context: EffectContext) -> AgentTrace:
    """Return an empty trace, in which neither the agent's secrets nor those that the config names
    are written: an agent's commands may print any of them.
    """
    known = {**secrets.known_secrets(context.config, context.environment), **binding.known}
    return AgentTrace(lambda value: secrets.redact(value, known), context.observer)
