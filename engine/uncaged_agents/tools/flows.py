"""Flows as tools of a role's agent: each call is a child thread, and a call that a crash left open
finds its thread again.

A role's policy names flows among its tools, as ``flow:top-stories``. A flow's direct output is the
agent's answer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from threading import Timer
from typing import TYPE_CHECKING, Any

from uncaged_bundles.errors import RefusedError, StorageError, UncagedError, UsageError
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.limits import FlowLimits
from uncaged_bundles.rights import ALL_FLOWS, Rights
from uncaged_bundles.storage.store import Store
from uncaged_engine.door.children import DEEPEST, depth_of
from uncaged_engine.door.effects import Cancel, EffectContext
from uncaged_engine.door.outcomes import Answer, Failure
from uncaged_engine.services import children
from uncaged_engine.services.costs import Spent, priced
from uncaged_engine.services.registry import KNOWN
from uncaged_models.client import ToolDescription
from uncaged_models.conversation import ToolResult, ToolUse, clean
from uncaged_models.prompts.history import cut
from uncaged_tools.flows import FlowResult, result_of_thread, split, tools

from .extract import NAME as EXTRACT
from .toolbox import MAX_RESULT_CHARACTERS, TOOLS

if TYPE_CHECKING:
    from uncaged_tools.flows import FlowTool

MOST_CALLS = 10
MOST_TOOLS = 100
"""Flows that a model is offered at once; endpoints refuse more than 128 tools."""


def flow_tools(context: EffectContext, names: Sequence[str]) -> FlowTools:
    """Return the flows of these names as tools; for `ALL_FLOWS` all but the context's own, those
    that a person marked, and those that may start a marked one.
    """
    engine = children.Engine(context.store)
    if ALL_FLOWS in names:
        flows = engine.registry.read().flows.values()
        marked = frozenset(flow.name for flow in flows if flow.confirm)
        names = [
            flow.name
            for flow in flows
            if flow.name not in marked and flow.hash != context.bundle.hash
        ]
        found = [
            tool
            for tool in tools(engine, reserved=(*TOOLS, EXTRACT), flows=names)
            if not may_start(context.store, tool.hash, marked)
        ]
        return FlowTools(engine, context, found[:MOST_TOOLS])
    return FlowTools(engine, context, tools(engine, reserved=(*TOOLS, EXTRACT), flows=names))


def may_start(store: Store, bundle: BundleHash, flows: Collection[str]) -> bool:
    """Tell whether a bundle's policy lets it, or its agents, start one of these flows."""
    limits = store.load_bundle(bundle, KNOWN).descriptor.policy.limits
    if not set(Rights.of(limits.get("role", {})).flows).isdisjoint(flows):
        return True
    names = FlowLimits.of(limits["flow"]).names if "flow" in limits else ()
    return bool(flows) and (names is None or not set(names).isdisjoint(flows))


class FlowTools:
    """Flows that one answer may use, at most ten times in all. lent: releases the agent's own slot
    while a flow runs.
    """

    lent: Callable[[], AbstractContextManager[None]]

    def __init__(
        self, engine: children.Engine, context: EffectContext, among: Sequence[FlowTool]
    ) -> None:
        self.lent = nullcontext
        self._engine = engine
        self._context = context
        self._among = {tool.name: tool for tool in among}
        self._calls: Counter[str] = Counter()
        self._spent = Spent()
        self.described = tuple(
            ToolDescription(name=tool.name, description=tool.description, parameters=tool.schema)
            for tool in among
        )

    def use(self, call: ToolUse, left_s: float) -> ToolResult:
        """Run the flow within *left_s*; any error is in the result, except a lack of the
        environment.
        """
        if call.name not in self._among:
            return self._failed(
                call, f"there is no tool {call.name!r}; there are: {', '.join(self._among)}"
            )
        if self._calls.total() >= MOST_CALLS:
            return self._failed(
                call,
                f"flows can be used {MOST_CALLS} times in one answer, and that is used up; answer with what you have",
            )
        try:
            tool = self._among[call.name]
            prompt, params = split(tool, call.parsed())
            result = self._run(tool.flow, prompt, params, left_s)
        except StorageError:
            raise
        except (UncagedError, ValueError) as exc:
            return self._failed(call, str(exc))
        if result.direct:
            return ToolResult(call=call.id, text=clean(as_text(result.data)), final=True)
        summary = {"success": result.success, "message": result.message, "data": result.data}
        return ToolResult(
            call=call.id,
            text=cut(clean(as_text(summary)), MAX_RESULT_CHARACTERS),
            failed=not result.success,
        )

    def shown(self, call: ToolUse) -> Mapping[str, object]:
        return {"tool": call.name}

    def counted(self, usage: Mapping[str, object]) -> Mapping[str, object]:
        """Return a model's usage with that of the threads that it started since the last call."""
        own = priced(usage, self._context.config.prices)
        spent, self._spent = self._spent, Spent()
        return (
            {**own, **Spent().plus(own).plus(spent.document()).document()}
            if spent.document()
            else own
        )

    def _run(self, flow: str, prompt: str, params: Mapping[str, Any], left_s: float) -> FlowResult:
        """Run a call in its thread. The same call in an attempt after a crash has the same id, so
        its thread is not started twice.
        """
        text = json.dumps({"name": flow, "prompt": prompt, "params": params}, sort_keys=True)
        self._calls[text] += 1
        cancel = Cancel()
        context = replace(
            self._context, key=f"{self._context.key}/{self._calls[text]}/{text}", cancel=cancel
        )
        if depth_of(context.start) >= DEEPEST:
            raise UsageError(f"threads start one another {DEEPEST} levels deep at most")
        if context.thread.run_child is not None:
            raise RefusedError("an agent starts no flows in a trial")
        child = children.child_id(context)
        timer = Timer(max(0.0, left_s), cancel.request)
        timer.daemon = True
        with self._context.cancel.on_request(cancel.request):
            if context.store.was_removed(child):
                raise RefusedError(
                    f"this call ran before, as thread {child}; it was removed, so its result is lost and it is not run again"
                )
            if context.store.journal_of(child) is None:
                children.begin(
                    self._engine, child, context, flow=flow, prompt=prompt, params=params
                )
            timer.start()
            try:
                with self.lent(), cancel.on_request(lambda: children.stop(self._engine, child)):
                    outcome = children.result_of(self._engine, child, context)
            finally:
                timer.cancel()
        found = self._engine.thread(child)
        if isinstance(outcome, Answer | Failure):
            self._spent = self._spent.plus(found.spent.document())
        return result_of_thread(child, found.summary.status, found.summary.message, found.end)

    def _failed(self, call: ToolUse, why: str) -> ToolResult:
        return ToolResult(call=call.id, text=why, failed=True)


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
