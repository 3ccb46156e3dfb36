"""Block flows made of calls of flows."""

from __future__ import annotations

from typing import Any

import pytest
from testbed.flow_steps import ran, steps_of
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.validation.validate import read_bundle
from uncaged_capture.forms.block import captured_block
from uncaged_capture.values import Parameter

COUNT = Parameter(name="count", value="5", type="integer")
NAME = Parameter(name="name", value="Ada", type="text")
DATA = {"songs": [{"a b": "Blue Moon", "id": 412}]}


def test_calls_become_blocks() -> None:
    """Values are named by paths, numbers keep their type, and the result is that of its call."""
    first = ran(1, DATA, flow="charts", params={"n": 5})
    second = ran(2, flow="play", params={"id": 412, "text": "Blue Moon for Ada", "fixed": [1]})
    block = captured_block(steps_of(first, second, parameters=(COUNT, NAME), result=1), "made")
    variables, *blocks = [one["config"] for one in block.recipe["steps"]]
    assert [(one["name"], one["value"], one["type"]) for one in variables["variables"]] == [
        ("count", 5, "integer"),
        ("name", "Ada", "string"),
    ]
    assert blocks == [
        {"flow": "charts", "params": {"n": "${count}"}, "resultVariable": "charts"},
        {
            "flow": "play",
            "params": {
                "id": "${charts.songs[0].id}",
                "text": '${charts.songs[0]["a b"]} for ${name}',
                "fixed": [1],
            },
            "resultVariable": "play",
        },
        {"expression": "charts"},
    ]
    bundle = read_bundle(block.source())
    assert dict(bundle.descriptor.policy.limits) == {"flow": {"names": ["charts", "play"]}}


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"note": "2 songs found"}, "uses the message of an earlier step"),
        ({"note": "costs ${5}"}, "in a text, which blocks would replace"),
        ({"n": "5"}, "needs count as text"),
    ],
    ids=["message", "dollar", "number as text"],
)
def test_what_blocks_cannot_say_is_refused(params: dict[str, Any], why: str) -> None:
    """The refusal names the step, the reason and the form that can say it."""
    calls = (ran(1, DATA, "2 songs found"), ran(2, params=params))
    with pytest.raises(RefusedError, match=f"step 2 .*{why}.*--as task"):
        captured_block(steps_of(*calls, parameters=(COUNT,)), "made")
