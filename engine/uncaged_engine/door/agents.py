"""Protocol between the role effect and agents: request, answer, failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from uncaged_bundles.contract import RoleSpec
from uncaged_bundles.rights import ALL_TOOLS, Rights

from .effects import Cancel
from .observing import EffectObserver
from .traces import AgentTrace

__all__ = [
    "Agent",
    "AgentAnswer",
    "AgentAway",
    "AgentCheck",
    "AgentFailed",
    "AgentKind",
    "AgentRequest",
    "AgentWaits",
    "EffectTools",
    "Repair",
    "RoleFlows",
    "RoleTools",
    "limits_in",
    "remark_stderr",
]


class RoleTools(Protocol):
    """Tools that the engine offers to a role's agent, in the form that `uncaged_models.loop.Tools`
    uses.

    counted: a model's usage with what the tools used up since the last time.
    """

    @property
    def described(self) -> Sequence[Any]: ...
    def use(self, call: Any, left_s: float) -> Any: ...
    def shown(self, call: Any) -> Mapping[str, object]: ...
    def counted(self, usage: Mapping[str, object]) -> Mapping[str, object]: ...


class RoleFlows(RoleTools, Protocol):
    """Flows as tools of a role. lent: releases the agent's slot among the working agents while a
    flow runs.
    """

    lent: Callable[[], AbstractContextManager[None]]


class EffectTools(RoleTools, Protocol):
    """Operations of an effect kind as tools of a role."""

    def noted(self) -> Mapping[str, object]:
        """Return what the role step's trace keeps beside the calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Request to correct an unusable answer. An agent with a session of its own may send *wording*
    instead of the whole prompt.
    """

    answer: str
    problem: str
    wording: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """Request to an agent for one answer.

    prompt: complete, history and answer format included. task, params: the thread's own. steps: the
    role steps so far.
    worktree: where to work (the subdirectory in which the person started), or None when the flow
    has no workspace.
    environment: what child processes may see. config: this agent's settings, secrets resolved.
    attempt: above 1 after a crash, a kill or a lack of the environment. key: the same for every
    attempt.
    calls, role_calls: answers that this thread's agents (those for this role) gave in earlier steps
    and in this one, repairs included.
    session: what the agent's answer before a repair carried, for its own use; before the first
    answer of a step the text that the same agent's last answer for this role carried, if this
    thread was the one that asked. scratch: a directory for its private files.
    sandbox: the preferred mechanism, as ``sandbox.mechanism.choose`` takes it. writable: whether
    the role may change the worktree.
    rights: what the role may do besides. reads: directories outside that the worktree's links lead
    to.
    flows: those that the role may use as tools, ready to be called. extract: the configured
    extractor as a tool. effects: operations of effect kinds as tools. trace: takes the tool calls.
    reply: a person's answer after this agent raised ``AgentWaits``; None without one. attended: a
    person started the thread on a terminal, and can be asked. remark: writes a line to the
    thread's debug log.
    redact: removes the secrets in config from JSON; all that an agent keeps on disk goes through
    it. observer: gets the turns of a model; None if the thread is not observed.
    """

    thread_id: str
    key: str
    role: RoleSpec
    prompt: str
    task: str
    params: Mapping[str, object]
    steps: Sequence[Mapping[str, object]]
    worktree: Path | None
    environment: Mapping[str, str]
    timeout_s: float
    attempt: int
    calls: int
    role_calls: int
    repair: Repair | None
    session: object | None
    config: Mapping[str, object]
    test_command: str | None
    scratch: Path
    cancel: Cancel
    progress: Callable[[Mapping[str, object]], None]
    sandbox: str = "auto"
    reply: object = None
    attended: bool = False
    writable: bool = True
    rights: Rights = ALL_TOOLS
    flows: RoleFlows | None = None
    extract: RoleTools | None = None
    effects: Sequence[EffectTools] = ()
    trace: AgentTrace = field(default_factory=AgentTrace)
    reads: tuple[Path, ...] = ()
    remark: Callable[[str], None] = lambda _text: None
    redact: Callable[[object], object] = lambda value: value
    observer: EffectObserver | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswer:
    """Text of an agent with its usage and session.

    usage: numbers that add up over calls (tokens, money), by name. session: handed back in a
    repair's request. A session that is a text is recorded with the step, too, and is handed back
    when the role is asked again.
    direct: the text is a tool's direct output; it is the step's content, even if the data has to be
    asked for.
    """

    text: str
    usage: Mapping[str, object] | None = None
    session: object | None = None
    direct: bool = False


class Agent(Protocol):
    """Source of answers for a role. ``EnvironmentLacks`` pauses the thread, ``AgentFailed`` fails
    the step; a kill may raise either.
    """

    @property
    def name(self) -> str: ...

    def answer(self, request: AgentRequest) -> AgentAnswer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCheck:
    """Outcome of a check of one agent, a line of `doctor`.

    model: "" if it is not known. usage: as in a step's record. asked: whether a turn was spent on
    it.
    """

    level: Literal["ok", "note", "problem"]
    text: str
    remedy: str = ""
    seconds: float = 0.0
    model: str = ""
    usage: Mapping[str, object] = field(default_factory=dict)
    asked: bool = False


class AgentKind:
    """Base class of agents: what is known of a kind before an agent of it is asked. A factory
    without it has these defaults.

    about: one line for `uncaged-workflow agents`; empty for a kind that needs settings, which is
    not listed by its bare name.
    needs: what that line names as a condition, such as "a key". plays: the roles that it answers
    for; None for all. keys: names of its settings.
    """

    about: ClassVar[str] = "of another distribution"
    needs: ClassVar[str] = ""
    plays: ClassVar[tuple[str, ...] | None] = None
    keys: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def holds(cls, settings: Mapping[str, object], rights: Rights) -> str | None:
        """Return how far an agent with *settings* is held to *rights*, which are narrowed; None if
        to all of them.
        """
        del settings
        return f"told of the policy's {limits_in(rights)}, not held to it"

    @classmethod
    def parse(cls, word: str) -> Mapping[str, object] | None:
        """Return the settings of ``--agent KIND:word``; None if the kind has no such form.

        Raises:
            UsageError: it has, and the word is wrong.
        """
        del word
        return None

    @classmethod
    def describe(cls, settings: Mapping[str, object]) -> str:
        """Return a few words on an agent of the config, such as its model or its program. The
        settings are not checked yet.
        """
        del settings
        return ""

    def check(self, request: AgentRequest) -> AgentCheck | None:
        """Find out without a turn, and without starting anything, whether the agent could answer;
        None if that is not known.

        Raises:
            EnvironmentLacks: it could not.
        """
        del request
        return None

    def check_live(self, request: AgentRequest) -> AgentCheck | None:
        """Find out with at most one tiny turn whether the agent answers; *request* holds the
        question.

        Raises:
            EnvironmentLacks, AgentFailed: it does not.
        """
        return self.check(request)


def limits_in(rights: Rights) -> str:
    """Return what narrows *rights*, as part of a sentence."""
    return (
        "tools and sandbox"
        if rights.tools is not None and rights.sandbox
        else "sandbox"
        if rights.tools is None
        else "tools"
    )


class AgentWaits(Exception):
    """Need for a person's answer: the thread waits, then the agent gets the same request with the
    reply.

    details: JSON values: ``question``, perhaps the ``schema`` of the answer and the whole
    ``prompt``.
    """

    def __init__(self, details: Mapping[str, object]) -> None:
        super().__init__(str(details.get("question", "")))
        self.details = dict(details)


class AgentFailed(Exception):
    """Failure of an agent to answer; the bundle gets the reason.

    kind: ``timeout`` when it took too long, ``model`` and ``refusal`` when a model's endpoint or
    the model said no, else ``agent``.
    more: JSON values for the failure's record, such as an exit code.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Literal["agent", "timeout", "model", "refusal"] = "agent",
        more: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.more = dict(more or {})


class AgentAway(AgentFailed):
    """Temporary failure of the service behind the agent (429, 5xx, a broken stream); the request is
    sent again.
    """


def remark_stderr(remark: Callable[[str], None], data: bytes, *, max_bytes: int) -> None:
    """Write an agent's standard error to the thread's debug log. max_bytes: size of the part that
    was kept, from the end.
    """
    if len(data) >= max_bytes:
        # half a line may hold half a secret, which is not recognised
        data = data.partition(b"\n")[2]
    text = data.decode("utf-8", "backslashreplace").strip()
    if text:
        remark(f"stderr: {text}")
