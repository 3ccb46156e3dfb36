"""Dialogue with an agent: an unusable answer is journaled and a corrected one requested, at most
twice.

If the agent's service has an outage, the request is sent again after a pause; after the last
attempt the thread is paused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from uncaged_engine.door.agents import (
    Agent,
    AgentAnswer,
    AgentAway,
    AgentFailed,
    AgentRequest,
    Repair,
)
from uncaged_models.prompts.extract import Check, Unfit, extract
from uncaged_models.prompts.prompt import repair_prompt, repair_wording
from uncaged_models.retries import TRIES, outage, pause_after, report

from ..usage import add_usage

MAX_REPAIRS = 2

Progress = Callable[[Mapping[str, object]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleReply:
    """Reply of an agent, after its corrections.

    meta: None if no answer was usable. problems: of each unusable answer, in order. calls: number
    of answers. session: of the last answer.
    """

    content: str
    meta: Mapping[str, object] | None
    problems: tuple[str, ...]
    usage: Mapping[str, object]
    calls: int
    session: object | None = None


def ask_until_usable(
    agent: Agent,
    request: AgentRequest,
    check: Check,
    record_attempt: Callable[[Mapping[str, object]], None],
    restore: Callable[[], None] = lambda: None,
) -> RoleReply:
    """Request an answer until one holds data that fits.

    Args:
        record_attempt: writes an unusable answer to the journal; called before a correction is
            requested.
        restore: restores the files as they were before the first answer.
    Raises:
        AgentFailed: from the agent; a failure to answer is not corrected.
        EnvironmentLacks: from the agent, or its service has an outage.
    """
    usage: dict[str, object] = {}
    problems: list[str] = []
    direct: str | None = None
    first = request
    while True:
        try:
            answer = answer_with_retries(
                agent, request, usage, restore if request.repair is None else lambda: None
            )
        except AgentFailed as exc:
            add_earlier_answers(exc, len(problems), usage)
            raise
        # half a surrogate pair has no place in a journal
        text = answer.text.encode("utf-8", "backslashreplace").decode()
        add_usage(usage, answer.usage or {})
        calls = len(problems) + 1
        direct = text if answer.direct else direct
        found = extract(text, check)
        if not isinstance(found, Unfit):
            return RoleReply(
                content=found.content if direct is None else direct,
                meta=found.meta,
                problems=tuple(problems),
                usage=usage,
                calls=calls,
                session=answer.session,
            )
        problems.append(found.problem)
        used = {"usage": dict(answer.usage)} if answer.usage else {}
        record_attempt({"answer": text, "problem": found.problem, **used})
        if calls > MAX_REPAIRS or request.cancel.requested:
            return RoleReply(
                content=text, meta=None, problems=tuple(problems), usage=usage, calls=calls
            )
        request.progress({"repair": calls, "problem": found.problem})
        request = replace(
            correction(first, text, found.problem),
            progress=with_usage_before(first.progress, dict(usage)),
            session=answer.session,
            calls=first.calls + calls,
            role_calls=first.role_calls + calls,
        )


def correction(request: AgentRequest, text: str, problem: str) -> AgentRequest:
    """Return *request* with the instruction to correct the unusable answer *text*."""
    return replace(
        request,
        prompt=repair_prompt(request.prompt, text, problem, request.role),
        repair=Repair(answer=text, problem=problem, wording=repair_wording(problem, request.role)),
    )


def add_earlier_answers(failed: AgentFailed, answers: int, usage: dict[str, object]) -> None:
    """Add the usage and the number of the unusable answers before it to a failure."""
    failed.more.setdefault("calls", answers + 1)
    add_usage(usage, cast("Mapping[str, object]", failed.more.get("usage") or {}))
    if usage:
        failed.more["usage"] = usage


def answer_with_retries(
    agent: Agent, request: AgentRequest, usage: dict[str, object], restore: Callable[[], None]
) -> AgentAnswer:
    """Return the agent's answer. During an outage of its service, send the request again after a
    pause.

    The usage of failed attempts is added to *usage*.
    Raises:
        AgentFailed: from the agent. EnvironmentLacks: the outage lasted for all attempts.
    """
    tries = 0
    while True:
        try:
            return agent.answer(
                request
                if tries == 0
                else replace(request, progress=with_usage_before(request.progress, dict(usage)))
            )
        except AgentAway as exc:
            tries += 1
            used = cast("Mapping[str, object]", exc.more.get("usage") or {})
            if tries >= TRIES:
                add_usage(usage, used)
                request.progress({"usage": usage} if usage else {})
                raise outage(str(exc), tries) from exc
            pause_s = pause_after(tries)
            request.progress(report(str(exc), tries, pause_s))
            if request.cancel.wait(pause_s):
                raise
            add_usage(usage, used)
            restore()


def with_usage_before(progress: Progress, before: Mapping[str, object]) -> Progress:
    """Return *progress* with the usage before this request added to each report."""

    def report_total(fields: Mapping[str, object]) -> None:
        usage = fields.get("usage")
        if isinstance(usage, Mapping):
            total = dict(before)
            add_usage(total, usage)
            fields = {**fields, "usage": total}
        progress(fields)

    return report_total
