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

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import DamagedError, EnvironmentLacks, NotFoundError, UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.limits import RoleLimits
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void, Wait
from uncaged_engine.door.past import PastEffect
from uncaged_engine.services.processes import kill_leftovers, ledger_of

from .turns.binding import binding_of
from .turns.past_calls import refused_call
from .turns.request import RoleBody, RoleCall, is_part, rights_of, role_call, workspace_level
from .turns.turn import RoleTurn, new_trace
from .workspace import Workspace, last_snapshot

SHOWN_PATHS = 10


class RoleHandler(Handler):
    kind = "role"
    limits = RoleLimits

    def rule(self, body: object, bundle: Bundle) -> Rule:
        del body
        if rights_of(bundle).effects:
            return "ask"  # what the agent did with them is not undone
        return "repeat" if workspace_level(bundle) == "none" else "restore"

    def is_harmless(self, body: object, context: EffectContext) -> bool:
        """Return False: an agent costs money, and what it does is not known before."""
        del body, context
        return False

    def read_answer(self, wait: Mapping[str, object], value: object) -> object:
        fields = wait.get("fields")
        if not isinstance(fields, Mapping):
            return value
        from .turns.answers import read_answer

        return read_answer(fields, value)

    def file_changes(
        self,
        store: Store,
        thread: ThreadId,
        start: Mapping[str, Any],
        step: Mapping[str, Any],
        environment: Mapping[str, str],
    ) -> Mapping[str, object] | None:
        from .changes import changes_of_step

        found = changes_of_step(store, thread, start, step, environment)
        return None if found is None else found.document()

    def repository(
        self,
        store: Store,
        thread: ThreadId,
        start: Mapping[str, Any],
        steps: Sequence[Mapping[str, Any]],
        environment: Mapping[str, str],
    ) -> Path | None:
        workspace = Workspace.of(start, store, thread, environment=environment)
        if workspace is None:
            return None
        workspace.bring(steps)
        return workspace.repository

    def past_refusal(self, past: PastEffect) -> str | None:
        return refused_call(past)

    def perform(self, body: object, context: EffectContext) -> Outcome:
        asked = read_body("role", RoleBody, body)
        if isinstance(asked, Failure):
            return asked
        try:
            call = role_call(asked, context)
        except ValueError as exc:
            return Failure.of("effect", f"role: {exc}")
        try:
            return perform_role(call, context)
        except (UsageError, NotFoundError, DamagedError) as exc:
            # the binding's settings, an agent that is gone, a damaged pack of files: a person fixes
            # it and resumes
            raise EnvironmentLacks(str(exc)) from exc


def perform_role(call: RoleCall, context: EffectContext) -> Outcome:
    """Return the outcome of a step, with the snapshot of the files that it left."""
    binding = binding_of(call.role.name, context)
    scratch = context.store.private(context.thread_id)
    scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    latest = last_snapshot(call.steps)
    workspace = prepare(context, scratch, latest)
    turn = RoleTurn(
        call=call,
        binding=binding,
        workspace=workspace,
        scratch=scratch,
        context=context,
        latest=latest,
        trace=new_trace(binding, context),
    )
    outcome = turn.outcome()
    if (
        isinstance(outcome, Void | Wait)
        or workspace is None
        or workspace_level(context.bundle) != "write"
    ):
        return outcome
    inside = workspace.changed_in_submodules(latest)
    if inside:
        shown = ", ".join(inside[:SHOWN_PATHS])
        context.progress({"text": f"changed in a submodule, so that no commit has it: {shown}"})
    changed = {"changedInSubmodules": list(inside)} if inside else {}
    snapshot = workspace.snapshot(context.seq, latest, now_ms=context.clock_ms())
    # crash here: the snapshot is made, no line names it; the next attempt starts from the one
    # before it
    files = {"snapshot": snapshot, **workspace.kept_pack(snapshot, latest), **changed}
    if isinstance(outcome, Failure):
        return Failure(error={**outcome.error, **files})
    return Answer(fields={**outcome.fields, **files})


def prepare(context: EffectContext, scratch: Path, latest: str | None) -> Workspace | None:
    """Return the thread's workspace as its last finished step left it. Files and processes of an
    earlier attempt are removed.
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
        workspace.bring(context.steps())
        workspace.ensure(latest, now_ms=context.clock_ms())
        if again:
            workspace.restore(latest)
    if not is_part(context):
        # a retry inside the same attempt is a further attempt, too
        asked.write_text(context.key, "utf-8")
    return workspace
