"""Steps of captured flows, without the threads that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_capture.flow_calls import FlowThreads
from uncaged_capture.linking import RanFlow, Recorded, link
from uncaged_capture.steps import FlowSteps
from uncaged_capture.values import Parameter


def ran(number: int, data: object = None, text: str = "", **more: Any) -> RanFlow:
    """Return a call of a flow with its result."""
    fields: Mapping[str, Any] = {"flow": f"flow-{number}", "params": {}, **more}
    return RanFlow(number=number, result=Recorded(text=text, data=data), **fields)


def steps_of(*calls: RanFlow, parameters: tuple[Parameter, ...] = (), result: int = 0) -> FlowSteps:
    """Return the steps of calls. result: the call whose result counts; 0 for the last."""
    return FlowSteps(
        prompt="do it",
        answer=None,
        calls=link(calls, parameters),
        left_out=(),
        notes=(),
        parameters=parameters,
        threads=FlowThreads(threads={}),
        result=result or calls[-1].number,
    )
