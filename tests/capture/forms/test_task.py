"""Task flows made of calls of flows."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testbed.flow_steps import ran, steps_of
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.validation.validate import read_bundle
from uncaged_capture.forms.task import captured_task
from uncaged_capture.values import Parameter

COUNT = Parameter(name="count", value="5", type="integer")
PATH = Parameter(name="a-b", value="it's", type="text")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def call_of(script: str, number: int) -> ast.Call:
    """Return the call of a script's step."""
    found = [
        node.value
        for node in ast.walk(ast.parse(script))
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call)
    ]
    return found[number - 1]


@given(params=st.dictionaries(st.text(), JSON, max_size=3), prompt=st.text())
def test_no_value_becomes_code(params: dict[str, Any], prompt: str) -> None:
    """Whatever a trace has as texts, names and keys, the script holds them as literals."""
    calls = (ran(1), ran(2, flow="other", params=params, prompt=prompt))
    call = call_of(captured_task(steps_of(*calls), "made").recipe["script"], 2)
    assert [ast.literal_eval(one) for one in call.args] == ["other", *([prompt] if prompt else [])]
    found = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    assert found == ({"params": params} if params else {})


def test_values_are_named_by_their_places() -> None:
    """References, parameters and joined texts are expressions; the policy names the flows."""
    first = ran(1, {"songs": [{"a b": "Blue Moon"}]}, flow="charts", params={"n": 5})
    second = ran(
        2,
        flow="async",
        params={"song": "Blue Moon", "note": "5 of it's Blue Moon"},
        prompt="it's",
    )
    task = captured_task(steps_of(first, second, parameters=(COUNT, PATH)), "made")
    assert task.recipe["script"] == (
        "async def execute(api, params):\n"
        '    charts = await api.call_action("charts", params={"n": params["count"]})\n'
        "    if charts.error:\n"
        '        return {"success": False, "error": charts.error}\n'
        '    flow_async = await api.call_action("async", params["a-b"], params={"song":'
        ' charts.data["songs"][0]["a b"], "note": str(params["count"]) + " of " +'
        ' str(params["a-b"]) + " " + str(charts.data["songs"][0]["a b"])})\n'
        "    if flow_async.error:\n"
        '        return {"success": False, "error": flow_async.error}\n'
        '    return {"success": True, "message": flow_async.text, "data": flow_async.data}\n'
    )
    bundle = read_bundle(task.source("Unproved at step 2."))
    assert dict(bundle.descriptor.policy.limits) == {"flow": {"names": ["async", "charts"]}}
    assert str(bundle.descriptor.raw["description"]).endswith("do it Unproved at step 2.")


def test_the_names_of_results_are_distinct() -> None:
    """A flow that is called twice, and flows with names of other things, have variables apart."""
    names = ("api", "again", "again", "9lives", "__x__")
    calls = [ran(number, flow=name) for number, name in enumerate(names, 1)]
    script = captured_task(steps_of(*calls), "made").recipe["script"]
    targets = [
        node.targets[0].id
        for node in ast.walk(ast.parse(script))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    assert targets == ["flow_api", "again", "again_2", "flow_9lives", "flow___x__"]


def test_one_call_is_no_task() -> None:
    """The refusal says how to run the flow."""
    with pytest.raises(RefusedError, match="uncaged-workflow run flow-1"):
        captured_task(steps_of(ran(1)), "made")
