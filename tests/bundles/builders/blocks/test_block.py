"""Block flows: what their JSON becomes, and how the bundle drives its blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from uncaged_bundles.builders.blocks.block import block_flow_of, policy_of
from uncaged_bundles.builders.blocks.block_flow import BlockFlow, parse_block_flow
from uncaged_bundles.builders.blocks.expression import FUNCTIONS, METHODS
from uncaged_bundles.builders.blocks.reader import BLOCKS
from uncaged_bundles.builders.blocks.variables import CATEGORIES, TYPES
from uncaged_bundles.builders.recipes.recipe import read_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow, flow_of
from uncaged_bundles.errors import BundleError
from uncaged_bundles.shapes import ShapeError
from uncaged_bundles.validation.validate import read_bundle

START = {
    "type": "start",
    "config": {
        "variables": [{"name": "query", "value": "", "description": "Search query to look up"}]
    },
}
SEARCH = {
    "type": "apiCall",
    "config": {
        "url": "https://api.search.example.com/search?q=${query}",
        "method": "GET",
        "responseVariable": "searchResults",
    },
}
READ = {
    "type": "webScraping",
    "config": {"url": "${searchResults.topResult.url}", "resultVariable": "pageContent"},
}
TELL = {
    "type": "llmInstruction",
    "config": {"instruction": "Summarize: ${pageContent}", "resultVariable": "summary"},
}
WHOLE = [START, SEARCH, READ, TELL]


class EffectError(Exception):
    """As the sandbox throws it in."""

    def __init__(self, **error: object) -> None:
        super().__init__(error["message"])
        self.error = error


def block(kind: str, **config: object) -> dict[str, object]:
    return {"type": kind, "config": config}


def flow(*steps: object, **fields: object) -> BlockFlow:
    return parse_block_flow(
        {
            "name": "Search and Summarize",
            "description": "Searches.",
            "active": True,
            "steps": list(steps),
            **fields,
        },
        "demo",
    )


def play(
    made: BlockFlow, *answers: object, **params: object
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run the built bundle with these answers; returns the effects that it yielded, and its
    result.
    """
    namespace: dict[str, Any] = {}
    exec(compile(build_flow(made).source, "<bundle>", "exec", dont_inherit=True), namespace)  # noqa: S102 - what a sandbox does with it
    run = namespace["run"]({"prompt": "", "params": params, "steps": []}, {})
    heard, effects = iter(answers), list[dict[str, Any]]()
    try:
        effects.append(next(run))
        while True:
            answer = next(heard)
            effects.append(run.throw(answer) if isinstance(answer, Exception) else run.send(answer))
    except StopIteration as stop:
        assert list(heard) == []
        result: dict[str, Any] = stop.value
    return [
        {kind: {key: value for key, value in body.items() if key != "label"}}
        for effect in effects
        for kind, body in effect.items()
    ], result


def labels(made: BlockFlow, *answers: object) -> list[str]:
    """Return the label that followers of a thread see for each effect."""
    namespace: dict[str, Any] = {}
    exec(compile(build_flow(made).source, "<bundle>", "exec", dont_inherit=True), namespace)  # noqa: S102 - what a sandbox does with it
    run = namespace["run"]({"prompt": "", "params": {}, "steps": []}, {})
    effects = [run.send(answer) for answer in (None, *answers)]
    return [body["label"] for effect in effects for body in effect.values()]


def ok(value: object) -> dict[str, object]:
    return {"status": 200, "headers": {}, "json": value}


def results_of(result: Any) -> Sequence[Any]:
    results: list[Any] = result["data"]["results"]
    return results


def test_the_documented_example_gives_the_documented_result() -> None:
    """Every block's result in order, all variables, no direct output."""
    found = {"topResult": {"url": "https://example.com/ai-benefits"}}
    effects, result = play(
        flow(*WHOLE),
        ok(found),
        {"url": "x", "title": "", "text": "Artificial"},
        {"text": "• a"},
        query="artificial intelligence benefits",
    )
    assert effects == [
        {
            "http": {
                "method": "GET",
                "url": "https://api.search.example.com/search?q=artificial%20intelligence%20benefits",
                "headers": {},
            }
        },
        {"fetch": {"url": "https://example.com/ai-benefits", "as": "markdown"}},
        {"llm": {"prompt": "Summarize: Artificial"}},
    ]
    query = {"query": "artificial intelligence benefits"}
    assert result == {
        "success": True,
        "message": "• a",
        "data": {
            "success": True,
            "results": [
                {"success": True, "result": query},
                {"success": True, "result": found},
                {"success": True, "result": "Artificial"},
                {"success": True, "result": "• a"},
            ],
            "variables": {
                **query,
                "searchResults": found,
                "pageContent": "Artificial",
                "summary": "• a",
            },
            "directOutput": None,
        },
    }


def test_a_bundle_is_deterministic_and_gives_its_flow_back() -> None:
    """Equal JSON gives equal bytes, and the flow read back from the bundle loses nothing."""
    made = flow(*WHOLE)
    assert build_flow(made).source == build_flow(flow(*WHOLE)).source
    bundle = read_bundle(build_flow(made).source, check_schemas=True)
    assert bundle.descriptor.kind == "block"
    again = block_flow_of(bundle)
    assert again is not None
    assert build_flow(again).source == bundle.source
    assert flow_of(bundle) == again


def test_json_is_read_as_it_comes() -> None:
    """By shape, in either of AnythingLLM's two forms; `active` is kept for who adds it."""
    text = json.dumps(
        {"name": "Search and Summarize", "description": "d", "active": False, "steps": WHOLE}
    ).encode()
    read = read_recipe(text, "flow.json")
    assert isinstance(read, BlockFlow)
    assert (read.name, read.active) == ("search-and-summarize", False)
    built = build_flow(read)
    assert (built.active, built.notes) == (False, ())
    wrapped = read_recipe(
        json.dumps({"name": "X y", "config": {"description": "d", "steps": WHOLE}}).encode(),
        "flow.json",
    )
    assert (wrapped.name, wrapped.description) == ("x-y", "d")


def test_start_variables_become_parameters() -> None:
    """With their description or a made-up one, their type, and whether they are needed; unnamed and
    hidden ones are none.
    """
    variables = [
        {"name": "a", "value": "x", "description": "The A."},
        {"name": "b"},
        {"name": "", "value": "left over"},
        {"name": "n", "type": "integer", "value": "10"},
        {"name": "l", "type": "array", "value": "[1]"},
        {"name": "must", "value": "unused", "required": True},
        {"name": "inner", "value": "7", "hidden": True},
        {"name": "key", "category": "configuration", "value": "k"},
    ]
    made = flow(block("start", variables=variables), block("code", expression="inner"))
    assert made.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "The A.", "default": "x"},
            "b": {"type": "string", "description": "Value for variable b"},
            "n": {"type": "integer", "description": "Value for variable n", "default": 10},
            "l": {"type": "array", "description": "Value for variable l", "default": [1]},
            "must": {"type": "string", "description": "Value for variable must"},
            "key": {
                "type": "string",
                "description": "Value for variable key",
                "default": "k",
                "forPeople": True,
            },
        },
        "additionalProperties": False,
        "required": ["must"],
    }
    assert made.variables == {"a": "x", "b": "", "n": 10, "l": [1], "inner": "7", "key": "k"}


def test_an_argument_wins_over_a_default_even_when_it_is_empty() -> None:
    """Default, then argument; an explicit empty one stays empty. Two runs share nothing."""
    made = flow(
        block("start", variables=[{"name": "a", "value": "default"}]),
        block("code", expression="a", resultVariable="b"),
    )
    assert play(made)[1]["data"]["variables"] == {"a": "default", "b": "default"}
    assert play(made, a="")[1]["data"]["variables"] == {"a": "", "b": ""}
    assert play(made, a="x")[1]["data"]["variables"] == {"a": "x", "b": "x"}
    assert play(made)[1]["data"]["variables"] == {"a": "default", "b": "default"}


@pytest.mark.parametrize(
    ("config", "effect"),
    [
        (
            {"method": "post", "body": '{"data": "${v}"}'},
            {"method": "POST", "json": {"data": 'a"b'}},
        ),
        ({"method": "PUT", "body": {"x": ["${v}"]}}, {"method": "PUT", "json": {"x": ['a"b']}}),
        (
            {"method": "PATCH", "bodyType": "text", "body": "<${v}>"},
            {"method": "PATCH", "text": '<a"b>'},
        ),
        (
            {
                "method": "POST",
                "bodyType": "form",
                "formData": [
                    {"key": "f", "value": "${v}"},
                    {"key": "g", "value": "1"},
                    {"key": "g", "value": "2"},
                ],
            },
            {"method": "POST", "form": {"f": 'a"b', "g": ["1", "2"]}},
        ),
        ({"method": "DELETE"}, {"method": "DELETE"}),
        ({"method": "DELETE", "body": '{"a": 1}'}, {"method": "DELETE", "json": {"a": 1}}),
        ({"method": "GET", "body": '{"a": 1}'}, {"method": "GET"}),
        (
            {
                "headers": [{"key": "X-A", "value": "${v}"}, {"key": "", "value": "x"}],
                "retry": {"times": 2},
                "timeout_s": 5,
            },
            {"method": "GET", "headers": {"X-A": 'a"b'}, "retry": {"times": 2}, "timeout_s": 5},
        ),
    ],
)
def test_an_api_call_becomes_a_request(
    config: dict[str, object], effect: dict[str, object]
) -> None:
    """Method, headers as a list of pairs, and a body of three types; DELETE with one if it is
    given.
    """
    made = flow(
        block("start", variables=[{"name": "v", "value": 'a"b'}]),
        block("apiCall", url="https://h.example/", **config),
    )
    assert play(made, ok(1))[0] == [
        {"http": {"url": "https://h.example/", "headers": {}, **effect}}
    ]


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ({"status": 200, "json": [1]}, [1]),
        ({"status": 201, "text": "plain"}, "plain"),
        ({"status": 204, "text": ""}, ""),
        ({"status": 200, "json": None}, None),
        ({"status": 200, "base64": "AAE="}, "AAE="),
    ],
)
def test_the_answer_is_data_or_text(answer: dict[str, object], value: object) -> None:
    """JSON where the server says so; anything else as it came."""
    made = flow(block("apiCall", url="https://h.example/", responseVariable="r"))
    assert play(made, answer)[1]["data"]["variables"] == {"r": value}


@pytest.mark.parametrize(
    ("step", "answers", "said"),
    [
        (
            block("apiCall", url="https://h.example/"),
            [{"status": 404, "text": "no such thing" * 100}],
            "(apiCall): HTTP 404: no such thingno",
        ),
        (
            block("apiCall", url="https://h.example/"),
            [{"status": 500, "json": {"e": 1}}],
            '(apiCall): HTTP 500: {"e":1}',
        ),
        (
            block("apiCall", url="https://h.example/"),
            [EffectError(kind="connect", message="refused")],
            "(apiCall): refused",
        ),
        (
            block("apiCall", url="https://h.example/", headers=[{"key": "X", "value": "${bad}"}]),
            [],
            "(apiCall): the header 'X' has a line break",
        ),
        (
            block("apiCall", url="https://h.example/", method="POST", body="{"),
            [],
            "(apiCall): the body is not JSON",
        ),
        (
            block("llmInstruction", instruction="x"),
            [EffectError(kind="model", message="overloaded")],
            "(llmInstruction): the LLM block failed: overloaded",
        ),
        (
            block("llmInstruction", instruction="${empty}"),
            [],
            "(llmInstruction): the LLM block failed: its instruction is empty",
        ),
        (block("webScraping", url="${empty}"), [], "(webScraping): there is no URL to read"),
        (
            block("webScraping", url="https://h.example/"),
            [{"url": "", "title": "", "text": " "}],
            "(webScraping): nothing to read at https://h.example/",
        ),
        (
            block("webScraping", url="https://h.example/"),
            [EffectError(kind="fetch", message="nothing matches")],
            "(webScraping): nothing matches",
        ),
        (
            block("flow", flow="other"),
            [{"success": False, "message": "no", "data": None}],
            "(flow): the flow 'other' did not succeed: no",
        ),
        (block("code", expression="1 / 0"), [], "(code): ZeroDivisionError"),
        (block("forEach", list="${bad}", steps=[]), [], "is no list"),
        (
            block("forEach", list=[1, 2, 3], limit=2, steps=[]),
            [],
            "the list has 3 items, and the limit of this block is 2",
        ),
    ],
)
def test_the_first_error_ends_the_flow_with_its_block(
    step: dict[str, object], answers: list[object], said: str
) -> None:
    """Number, type and message of the block that failed reach the caller; nothing runs after it."""
    start = block("start", variables=[{"name": "bad", "value": "a\r\nX: y"}, {"name": "empty"}])
    _, result = play(flow(start, step, block("code", expression="1")), *answers)
    assert result["success"] is False
    assert said in result["message"]
    assert result["message"].startswith("block 2 (")
    assert len(results_of(result)) == 2
    failed = results_of(result)[1]
    assert failed == {
        "success": False,
        "error": result["message"],
        "block": "2",
        "type": step["type"],
    }
    assert len(result["message"]) < 700


@pytest.mark.parametrize("value", ["text", "", 0, None, False, {"a": 1}])
def test_a_direct_output_ends_the_flow_with_the_raw_value(value: object) -> None:
    """Also one that is empty, 0 or null; what comes after it does not run."""
    made = flow(
        block("apiCall", url="https://h.example/", directOutput=True, responseVariable="r"),
        block("code", expression="1 / 0"),
    )
    _, result = play(made, ok(value))
    assert (result["success"], result["direct"], result["data"]["directOutput"]) == (
        True,
        True,
        value,
    )
    assert results_of(result) == [{"success": True, "result": value}]
    assert result["data"]["variables"] == {"r": value}


def test_a_condition_runs_one_of_its_sides() -> None:
    """A condition's value is that of the last block inside; blocks inside have numbers of their
    own.
    """
    inner = block(
        "condition",
        expression="n > 2",
        then=[block("code", expression="'big'", resultVariable="size")],
    )
    made = flow(block("start", variables=[{"name": "n", "type": "integer", "value": 1}]), inner)
    assert play(made, n=3)[1]["data"]["variables"] == {"n": 3, "size": "big"}
    assert results_of(play(made)[1])[1] == {"success": True, "result": None}
    failing = block(
        "condition",
        expression="True",
        then=[block("code", expression="1"), block("code", expression="x")],
    )
    assert "block 1.2 (code): there is no variable 'x'" in play(flow(failing))[1]["message"]


def test_each_effect_says_which_block_it_is() -> None:
    """Number and count of the blocks, and the type; those inside have numbers of their own."""
    loop = block("forEach", list=[1, 2], steps=[block("llmInstruction", instruction="x")])
    made = flow(block("apiCall", url="https://h.example/"), loop, block("code", expression="1"))
    assert labels(made, ok(1), "a") == [
        "block 1 of 3 (apiCall)",
        *["block 2.1 of 3 (llmInstruction)"] * 2,
    ]


def test_a_loop_runs_its_blocks_for_each_item() -> None:
    """A loop runs over a list, or a text that holds one; its value is the list of the results of
    all rounds.
    """
    steps = [block("apiCall", url="https://h.example/${item.id}/${index}", resultVariable="got")]
    loop = block("forEach", list="${items}", steps=steps, resultVariable="all")
    effects, result = play(flow(loop), ok("a"), ok("b"), items=[{"id": 7}, {"id": 8}])
    assert [effect["http"]["url"] for effect in effects] == [
        "https://h.example/7/0",
        "https://h.example/8/1",
    ]
    assert result["data"]["variables"]["all"] == ["a", "b"]
    assert play(flow(loop), ok("a"), items='[{"id": 1}]')[1]["data"]["variables"]["all"] == ["a"]
    direct = block(
        "forEach", list=[1, 2], steps=[block("code", expression="item", directOutput=True)]
    )
    assert play(flow(direct, block("code", expression="1 / 0")))[1]["data"]["directOutput"] == 1


def test_a_flow_is_called_with_values_of_their_own_type() -> None:
    """A lone placeholder keeps its type; the data comes back, or the message where there is
    none.
    """
    made = flow(
        block(
            "flow",
            flow="other",
            params={"n": "${n}", "t": "n=${n}"},
            prompt="do ${n}",
            resultVariable="r",
        )
    )
    effects, result = play(made, {"success": True, "message": "m", "data": {"x": 1}}, n=5)
    assert effects == [
        {"flow": {"name": "other", "params": {"n": 5, "t": "n=5"}, "prompt": "do 5"}}
    ]
    assert result["data"]["variables"]["r"] == {"x": 1}
    assert (
        play(made, {"success": True, "message": "m", "data": None}, n=5)[1]["data"]["variables"][
            "r"
        ]
        == "m"
    )


def test_a_page_is_captured_as_asked_and_summarised_when_it_is_too_long() -> None:
    """Markdown, HTML or the parts that a selector names."""
    for capture, effect in [
        ({}, {"as": "markdown"}),
        ({"captureAs": "html"}, {"as": "html"}),
        (
            {"captureAs": "querySelector", "querySelector": "#${id}"},
            {"as": "selector", "selector": "#main"},
        ),
    ]:
        made = flow(block("webScraping", url="https://h.example/", **capture))
        assert play(made, {"text": "x"}, id="main")[0] == [
            {"fetch": {"url": "https://h.example/", **effect}}
        ]


def test_a_page_that_is_too_long_is_summarised_in_parts() -> None:
    """A long page is cut between paragraphs, each part summarised, and the summaries again while
    they are too long.
    """
    made = flow(block("webScraping", url="https://h.example/", enableSummarization=True))
    page = "\n\n".join(letter * 60_000 for letter in "abc")
    effects, result = play(
        made, {"text": page}, {"text": "one"}, {"text": "two"}, {"text": "three"}
    )
    assert [effect["llm"]["input"].strip() for effect in effects[1:]] == [
        letter * 60_000 for letter in "abc"
    ]
    assert results_of(result)[0]["result"] == "one\n\ntwo\n\nthree"
    effects, result = play(
        made,
        {"text": "x" * 150_000},
        {"text": "y" * 90_000},
        {"text": "z" * 20_000},
        {"text": "a"},
        {"text": "b"},
    )
    assert [len(effect["llm"]["input"]) for effect in effects[1:]] == [
        100_000,
        50_000,
        90_002,
        20_000,
    ]
    assert results_of(result)[0]["result"] == "a\n\nb"
    _, result = play(made, {"text": "x" * 150_000}, {"text": "y" * 90_000}, {"text": "z" * 90_000})
    assert "its summary is no shorter" in result["message"]
    assert len(play(made, {"text": "x" * 99})[0]) == 1


@pytest.mark.parametrize(
    ("steps", "warning"),
    [
        (
            [block("apiCall", url="https://h.example/${qurey}")],
            "block 2 (apiCall): ${qurey} names no variable and would stay as it",
        ),
        (
            [block("llmInstruction", instruction="do ${nothing.at.all}")],
            "${nothing.at.all} names no variable and would stay as it is",
        ),
        (
            [
                block(
                    "apiCall",
                    url="https://h.example/",
                    headers=[{"key": "Authorization", "value": "Bearer abcdef123"}],
                )
            ],
            "block 2 (apiCall), 'Authorization' holds a credential as text",
        ),
        (
            [block("apiCall", url="https://h.example/", method="POST", body={"apiKey": "abc"})],
            "'apiKey' holds a credential as text",
        ),
        (
            [
                block(
                    "apiCall",
                    url="https://h.example/${query}",
                    headers=[{"key": "Authorization", "value": "Bearer secret:KEY"}],
                )
            ],
            None,
        ),
        (
            [
                block("code", expression="1", resultVariable="r"),
                block("llmInstruction", instruction="${r} ${query.x}"),
            ],
            None,
        ),
        (
            [
                block(
                    "forEach",
                    list="${query}",
                    itemVariable="one",
                    steps=[block("llmInstruction", instruction="${one} ${index}")],
                )
            ],
            None,
        ),
    ],
)
def test_a_likely_slip_is_warned_of(steps: list[Any], warning: str | None) -> None:
    """A placeholder without a variable and a credential in plain text are notes at `add`; what is
    right has none.
    """
    notes = flow(block("start", variables=[{"name": "query"}]), *steps).notes
    assert [warning in note for note in notes] == [True] if warning else notes == ()


def test_an_object_as_instruction_is_json() -> None:
    """AnythingLLM's rule."""
    made = flow(block("llmInstruction", instruction={"do": "${v}"}, model="small"))
    assert play(made, "said", v="it")[0] == [{"llm": {"prompt": '{"do":"it"}', "model": "small"}}]


def test_a_model_may_choose_flows_before_it_answers() -> None:
    """Each call's outcome, failures too, is the input of the next question; after ten calls it can
    only answer.
    """
    tools = [{"flow": "add-song", "description": "Adds a song."}, {"flow": "find-song"}]
    made = flow(block("llmInstruction", instruction="Add it.", tools=tools, resultVariable="r"))
    assert policy_of(made) == {"llm": {}, "flow": {"names": ["add-song", "find-song"]}}
    found = {"threadId": "t", "hash": "h", "success": True, "message": "found", "data": 7}
    script = [
        {"text": "…", "data": {"flow": "find-song", "arguments": {"title": "x"}}},
        found,
        {"flow": "add-song", "arguments": {"id": 7}},
        EffectError(kind="flow", message="full"),
        {"flow": None, "answer": "It is full."},
    ]
    effects, result = play(made, *script)
    assert result["data"]["variables"]["r"] == "It is full."
    assert [effect["flow"] for effect in effects if "flow" in effect] == [
        {"name": "find-song", "params": {"title": "x"}},
        {"name": "add-song", "params": {"id": 7}},
    ]
    first, last = effects[0]["llm"], effects[-1]["llm"]
    assert "- add-song: Adds a song." in first["prompt"]
    assert first["schema"]["properties"]["flow"]["enum"] == ["add-song", "find-song", None]
    assert last["input"] == [
        {
            "flow": "find-song",
            "arguments": {"title": "x"},
            "success": True,
            "message": "found",
            "data": 7,
        },
        {
            "flow": "add-song",
            "arguments": {"id": 7},
            "success": False,
            "message": "full",
            "data": None,
        },
    ]
    endless = [answer for _ in range(10) for answer in ({"flow": "find-song"}, found)]
    effects, result = play(made, *endless, {"flow": "find-song", "answer": "enough"})
    assert sum("flow" in effect for effect in effects) == 10
    assert set(effects[-1]["llm"]["schema"]["properties"]) == {"answer"}
    assert result["message"] == "enough"


@pytest.mark.parametrize(
    ("steps", "policy"),
    [
        (WHOLE, {"http": {"hosts": ["api.search.example.com"]}, "fetch": {}, "llm": {}}),
        (
            [block("apiCall", url="http://127.0.0.1:8080/x")],
            {"http": {"hosts": ["127.0.0.1:8080"], "private": True}},
        ),
        (
            [block("apiCall", url="http://[::1]:80/")],
            {"http": {"hosts": ["[::1]:80"], "private": True}},
        ),
        ([block("apiCall", url="https://a.example/"), block("apiCall", url="${b}")], {"http": {}}),
        (
            [
                block("apiCall", url="https://${h}.example/"),
                block("apiCall", url="https://a.example/"),
            ],
            {"http": {}},
        ),
        (
            [block("webScraping", url="https://a.example", enableSummarization=True)],
            {"fetch": {"hosts": ["a.example"]}, "llm": {}},
        ),
        (
            [
                block(
                    "apiCall",
                    url="https://a.example/",
                    headers=[{"key": "Authorization", "value": "Bearer secret:KEY"}],
                )
            ],
            {"http": {"hosts": ["a.example"], "secrets": {"KEY": ["a.example"]}}},
        ),
        ([block("flow", flow="x"), block("flow", flow="y")], {"flow": {"names": ["x", "y"]}}),
        ([block("flow", flow="x"), block("flow", flow="${y}")], {"flow": {}}),
        (
            [block("condition", expression="1", then=[block("llmInstruction", instruction="x")])],
            {"llm": {}},
        ),
        ([block("code", expression="1")], {}),
    ],
)
def test_the_policy_asks_for_what_the_blocks_need(
    steps: list[object], policy: dict[str, object]
) -> None:
    """Hosts that are written out are named; once one is computed, any may be asked."""
    assert policy_of(flow(*steps)) == policy


def test_the_file_may_ask_for_more_and_a_secret_needs_a_host() -> None:
    """The limits that a file declares for a kind override the inferred ones."""
    made = flow(*WHOLE, policy={"fetch": {"private": True}, "http": {"timeout_s": 5}})
    assert policy_of(made)["fetch"] == {"private": True}
    assert policy_of(made)["http"] == {"hosts": ["api.search.example.com"], "timeout_s": 5}
    secret = block("apiCall", url="${u}", headers=[{"key": "K", "value": "secret:KEY"}])
    with pytest.raises(
        BundleError, match=r"block 1 \(apiCall\) sends secret:KEY to a host that is not written out"
    ):
        build_flow(flow(secret))
    build_flow(flow(secret, policy={"http": {"secrets": {"KEY": ["a.example"]}}}))


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            [START, block("teleport")],
            r"flow.steps[1].type: 'teleport' is no type of block (block 2); known: start, apiCall, llmInstruction,",
        ),
        ([{"config": {}}], "flow.steps[0].type: is missing (block 1)"),
        ([{"type": "start"}], "flow.steps[0].config: is missing; block 1 (start) needs one"),
        (
            [START, block("apiCall")],
            "flow.steps[1].config.url: is missing; block 2 (apiCall) needs it",
        ),
        (
            [block("code", expression="1"), START],
            "flow.steps[1]: block 2 is a start block; there is one, and it is the first",
        ),
        (
            [block("start", variables=[{"name": "a"}, {"name": "a"}])],
            "variables[1].name: the variable 'a' occurs twice",
        ),
        (
            [block("start", variables=[{"name": "a", "type": "integer", "value": "x"}])],
            "variables[0].value: 'x' is no integer",
        ),
        (
            [block("start", variables=[{"name": "a", "type": "date"}])],
            "variables[0].type: 'date' is not one of",
        ),
        ([block("start", variables=[{"name": "a\0"}])], "is no name for a variable"),
        ([block("start", variables=[{"name": "a", "x": 1}])], "unknown key 'x'"),
        ([block("start", variables={"a": 1})], "must be a list of variables"),
        (
            [block("apiCall", url="u", method="BREW")],
            "flow.steps[0].config.method: 'BREW' is not one of",
        ),
        (
            [block("apiCall", url="u", bodyType="xml")],
            "bodyType: 'xml' is not one of json, form, text",
        ),
        (
            [block("apiCall", url="u", headers={"a": "b"})],
            'headers: must be a list of {"key", "value"}',
        ),
        ([block("apiCall", url=5)], "config.url: must be text"),
        ([block("webScraping", url="u", captureAs="querySelector")], "querySelector: is missing"),
        ([block("forEach", list=5, steps=[])], "config.list: must be a list"),
        (
            [block("forEach", list=[], steps=[], limit=5000)],
            "config.limit: must be from 1 to 1,000",
        ),
        (
            [block("forEach", list=[], steps=[block("x")])],
            "flow.steps[0].config.steps[0].type: 'x' is no type of block (block 1.1)",
        ),
        (
            [block("code", expression="eval('1')")],
            "flow.steps[0].config.expression: column 1: there is no function 'eval'",
        ),
        (
            [block("llmInstruction", instruction="x", tools=["a"])],
            "config.tools[0]: must be a mapping",
        ),
        (
            [block("code", expression="1", directOutput="yes")],
            "directOutput: must be True or False",
        ),
        ([], "flow.steps: is empty"),
        ("x", "flow.steps: must be a list of blocks"),
        ([block("code", expression="1")] * 1001, "at most 1,000 blocks"),
        ([5], "flow.steps[0]: must be a mapping"),
    ],
)
def test_what_is_wrong_is_refused_with_its_position(steps: Any, said: str) -> None:
    """When the flow is added, not when it runs; known types are listed."""
    with pytest.raises(ShapeError) as caught:
        parse_block_flow({"name": "x", "steps": steps}, "x")
    assert said in str(caught.value)


def test_blocks_are_not_nested_for_ever() -> None:
    """A limit, not a crash."""
    step = block("code", expression="1")
    for _ in range(9):
        step = block("condition", expression="1", then=[step])
    with pytest.raises(ShapeError, match="nested at most 8 levels deep"):
        flow(step)


@pytest.mark.parametrize("name", ["../x", "", "\0", "😀", "  "])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    """Names lead nowhere on disk; one without letters has none."""
    text = json.dumps({"name": name, "steps": WHOLE}).encode()
    if name == "../x":
        assert read_recipe(text, "f.json").name == "x"
        return
    with pytest.raises(BundleError, match="name"):
        read_recipe(text, "f.json")


def test_what_does_nothing_is_told() -> None:
    """An unknown key of a known block is no error, and no secret either."""
    made = flow(block("llmInstruction", instruction="x", temperature=1), colour="red")
    assert made.notes == (
        "the key 'colour' of the flow is not known and does nothing",
        "block 1 (llmInstruction): 'temperature' is not known and does nothing",
    )


def test_the_page_about_block_flows_is_true() -> None:
    """The page's example builds, and the page has each type of block, function and method."""
    page = (Path(__file__).parents[4] / "docs" / "flows" / "block.md").read_text("utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]
    built = build_flow(read_recipe(example.encode(), "block.md"))
    assert built.notes == ()
    assert [kind for kind in BLOCKS if f"`{kind}`" not in page] == []
    words = set(re.findall(r"\w+", page))
    assert [word for word in (*FUNCTIONS, *METHODS, *TYPES, *CATEGORIES) if word not in words] == []
