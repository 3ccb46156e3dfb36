"""Browser operations as tools of a role's agent, within the policy and the limits of the step. What
the agent does is noted, so that a web flow can be made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from uncaged_bundles import fields, shapes
from uncaged_bundles.limits import Texts
from uncaged_bundles.records import dataclass, replace
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.door.outcomes import Answer, Failure
from uncaged_models.client import ToolDescription
from uncaged_models.conversation import ToolResult, ToolUse, clean
from uncaged_models.prompts.extract import checker

from ..effect.handler import BrowserCall
from ..effect.limits import BrowserLimits
from ..effect.secrets import EffectSecrets
from ..operations import read_operation
from ..problems import BrowserProblem
from ..scope import BrowserScope
from ..session.address import DEFAULT_SESSION
from ..session.client import SessionClient, SessionGone
from ..view.as_data import page_text, problem_text

__all__ = ["STEPS", "BrowserTools", "GoalLimits"]

PATH = ("browser",)
STEPS = 30
MOST_STEPS = 500
LOAD_S = 5.0
USED_UP = (
    "the limit of {steps} steps is reached; end now, and say what was done and what is missing"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalLimits:
    """Limits of one step within those of the policy. start: the address of the first page. steps:
    calls of tools. hosts: where pages may be. private: whether they may be on this machine or in
    its network.
    """

    start: str = ""
    steps: int = STEPS
    hosts: Texts = None
    private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserTool:
    """One tool. operation: returns the effect's body for the arguments. shows: the result is the
    page view afterwards.
    """

    described: ToolDescription
    operation: Callable[[Mapping[str, Any]], dict[str, object]]
    shows: bool = True


def _tool(
    name: str,
    description: str,
    operation: Callable[[Mapping[str, Any]], dict[str, object]],
    required: tuple[str, ...] = (),
    *,
    shows: bool = True,
    **properties: Mapping[str, object],
) -> BrowserTool:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    described = ToolDescription(name=name, description=description, parameters=schema)
    return BrowserTool(described=described, operation=operation, shows=shows)


def _on(do: str) -> Callable[[Mapping[str, Any]], dict[str, object]]:
    """Return the function that makes the body of an operation on an element."""

    def body(arguments: Mapping[str, Any]) -> dict[str, object]:
        rest = {key: value for key, value in arguments.items() if key != "ref"}
        target = {"target": [{"ref": arguments["ref"]}]} if "ref" in arguments else {}
        return {"do": do, **target, **rest}

    return body


REF = {
    "type": "string",
    "minLength": 1,
    "description": "A reference of the page view, such as e1520.",
}
TEXT = {"type": "string"}
TOOLS: Mapping[str, BrowserTool] = {
    tool.described.name: tool
    for tool in (
        _tool(
            "browser_open",
            "Load an address in the current tab.",
            lambda arguments: {"do": "navigate", "url": arguments["url"], "timeout_s": 30},
            ("url",),
            url={"type": "string", "minLength": 1},
        ),
        _tool(
            "browser_view",
            "Show the page. more: the reference of a part that was cut ([more=e7]). words: only the parts that have them.",
            lambda arguments: {"do": "view", **arguments},
            shows=False,
            more=REF,
            words=TEXT,
        ),
        _tool("browser_click", "Click an element.", _on("click"), ("ref",), ref=REF),
        _tool(
            "browser_fill",
            "Replace the content of a field. submit: press Enter after it. A secret is typed as secret:NAME.",
            _on("fill"),
            ("ref", "text"),
            ref=REF,
            text=TEXT,
            submit={"type": "boolean"},
        ),
        _tool(
            "browser_select",
            "Select options of a list by their labels.",
            _on("select"),
            ("ref", "options"),
            ref=REF,
            options={"type": "array", "items": TEXT, "minItems": 1},
        ),
        _tool(
            "browser_check",
            "Set a check box or a radio button.",
            _on("check"),
            ("ref",),
            ref=REF,
            checked={"type": "boolean"},
        ),
        _tool(
            "browser_press",
            "Press a key, such as Enter or Escape, in an element or where the focus is.",
            _on("press"),
            ("key",),
            key={"type": "string", "minLength": 1},
            ref=REF,
        ),
        _tool("browser_back", "Go back to the page before.", lambda _: {"do": "back"}),
    )
}
"""Tools by name."""


class BrowserTools:
    """Tools of one answer, in the context of the thread."""

    described = tuple(tool.described for tool in TOOLS.values())

    def __init__(self, options: Mapping[str, object], context: EffectContext) -> None:
        """Raises:
        ShapeError: the options are wrong, or go beyond the policy.
        """
        self.limits = fields.read(GoalLimits, options, PATH)
        shapes.whole_between(1, MOST_STEPS)(self.limits.steps, (*PATH, "steps"))
        granted = BrowserLimits.of(context.bundle.descriptor.policy.limits.get("browser", {}))
        if granted.profile == "kept":
            raise shapes.ShapeError(PATH, 'its tools need "profile": "fresh" in the policy')
        self._limits = _narrowed(granted, self.limits)
        self._context = context
        self._secrets = EffectSecrets(self._limits, context)
        self._steps = 0

    def use(self, call: ToolUse, left_s: float) -> ToolResult:
        """Perform a call; any problem is in the result.

        Raises:
            EnvironmentLacks: there is no browser, or it ended.
        """
        del left_s  # each operation has a limit of its own
        self._steps += 1
        if self._steps > self.limits.steps:
            return _failed(call, USED_UP.format(steps=self.limits.steps))
        tool = TOOLS.get(call.name)
        if tool is None:
            return _failed(call, f"there is no tool {call.name!r}; there are: {', '.join(TOOLS)}")
        try:
            arguments = call.parsed()
        except ValueError as exc:
            return _failed(call, str(exc))
        problems = checker(tool.described.parameters)(arguments)
        if problems:
            return _failed(call, f"the arguments of {call.name} are wrong: {'; '.join(problems)}")
        with SessionClient.open(self._context.store, DEFAULT_SESSION) as client:
            return self._perform(client, call, tool.operation(arguments), shows=tool.shows)

    def allows(self, url: str) -> bool:
        """Return whether a page may be at an address."""
        return BrowserScope.of(self._limits.hosts, self._limits.url_patterns).allows(url)

    def perform(self, body: dict[str, object]) -> Mapping[str, Any] | str:
        """Perform an operation, which is a step if it does more than read; return its answer, or
        why it failed.

        Raises:
            EnvironmentLacks: there is no browser, or it ended.
        """
        self._steps += read_operation(body).effect != "reads"
        if self._steps > self.limits.steps:
            return f"the limit of {self.limits.steps} steps is reached"
        with SessionClient.open(self._context.store, DEFAULT_SESSION) as client:
            return self._answer(client, body)

    def shown(self, call: ToolUse) -> Mapping[str, object]:
        return {"tool": call.name}

    def counted(self, usage: Mapping[str, object]) -> Mapping[str, object]:
        return usage

    def noted(self) -> Mapping[str, object]:
        """Return the recording of what was done, without secrets."""
        if not self._steps:
            return {}
        try:
            client = SessionClient.connect(self._context.store, DEFAULT_SESSION)
            if client is None:
                return {}
            with client:
                recording = client.recorded(str(self._context.thread_id))
        except (SessionGone, BrowserProblem):
            return {}
        return {} if recording is None else {"recording": self._secrets.redact(recording)}

    def _perform(
        self, client: SessionClient, call: ToolUse, body: dict[str, object], *, shows: bool
    ) -> ToolResult:
        answer = self._answer(client, body)
        if isinstance(answer, Mapping) and shows:
            self._answer(client, {"do": "wait", "for": "load", "timeout_s": LOAD_S})
            answer = self._answer(client, {"do": "view"})
        if isinstance(answer, str):
            return _failed(call, problem_text(answer))
        return ToolResult(call=call.id, text=clean(page_text(answer)))

    def _answer(self, client: SessionClient, body: dict[str, object]) -> Mapping[str, Any] | str:
        """Return the answer of an operation, or why it failed."""
        performed = BrowserCall(
            self._limits, read_operation(body), body, self._context, recorded=True
        ).perform(client)
        if isinstance(performed, Failure):
            return str(performed.error.get("message", ""))
        value = performed.fields.get("outcome") if isinstance(performed, Answer) else None
        return value if isinstance(value, Mapping) else "the operation was stopped"


def _narrowed(granted: BrowserLimits, wanted: GoalLimits) -> BrowserLimits:
    """Return the limits of the policy, narrowed.

    Raises:
        ShapeError: a host is outside of them.
    """
    hosts = granted.hosts if wanted.hosts is None else list(wanted.hosts)
    allowed = BrowserScope.of(granted.hosts)
    for host in hosts or ():
        if granted.hosts is not None and not allowed.allows(f"https://{host}/"):
            raise shapes.ShapeError(
                (*PATH, "hosts"), f"{host[:80]!r} is not among those of the policy"
            )
    return replace(granted, hosts=hosts, private=granted.private and wanted.private)


def _failed(call: ToolUse, text: str) -> ToolResult:
    return ToolResult(call=call.id, text=clean(text), failed=True)
