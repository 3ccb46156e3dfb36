"""Task scripts inside a bundle: the api, the parameters, and the result."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import pytest
from uncaged_bundles.builders.recipes.flows import TaskFlow
from uncaged_bundles.builders.recipes.recipe_flow import build_flow


class EffectError(Exception):
    """The exception that the sandbox's child raises inside a bundle."""

    def __init__(self, error: Mapping[str, object]) -> None:
        super().__init__(str(error.get("message")))
        self.error = error


def fails(message: str, kind: str = "web") -> EffectError:
    return EffectError({"kind": kind, "message": message})


def drive(
    script: str, *answers: Any, params: Mapping[str, object] | None = None
) -> tuple[list[Any], Any]:
    """Run a script over these answers; returns the effects that it asked for and its result."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    flow = TaskFlow(
        name="demo",
        description="d",
        display_name="",
        source="",
        parameters=schema,
        script=textwrap.dedent(script),
        policy={},
    )
    namespace: dict[str, Any] = {}
    exec(compile(build_flow(flow).source, "bundle.py", "exec"), namespace)  # noqa: S102 - the bundle is the subject of the test
    generator = namespace["run"](
        {"prompt": "", "params": dict(params or {}), "steps": []},
        {"threadId": "t", "startedAt": 1, "seed": 1},
    )
    effects: list[Any] = []
    waiting = list(answers)
    try:
        effects.append(next(generator))
        while True:
            answer = waiting.pop(0)
            effects.append(
                generator.throw(answer) if isinstance(answer, Exception) else generator.send(answer)
            )
    except StopIteration as stop:
        assert waiting == []
        return effects, stop.value


def one(call: str, *answers: Any) -> tuple[Any, Any]:
    """The effect of one call, and what the script sees of its answer."""
    script = f"async def execute(api, params):\n    found = await {call}\n    return [found.text, found['data'], found.error]\n"
    effects, result = drive(script, *answers)
    assert len(effects) == 1
    return effects[0], result["data"]


CALLS = [
    (
        'api.call_action("player", "create", {"n": 1})',
        {"flow": {"name": "player", "prompt": "create", "params": {"n": 1}}},
        {"threadId": "x", "hash": "y", "success": True, "message": "made", "data": {"id": 7}},
        ["made", {"id": 7}, None],
    ),
    (
        'api.call_action("player")',
        {"flow": {"name": "player"}},
        {"threadId": "x", "hash": "y", "success": False, "message": "no songs", "data": None},
        ["no songs", None, "no songs"],
    ),
    (
        'api.query_llm("Why?", input=[1], model="m")',
        {"llm": {"prompt": "Why?", "input": [1], "model": "m"}},
        "because",
        ["because", None, None],
    ),
    (
        'api.query_llm("Why?")',
        {"llm": {"prompt": "Why?"}},
        {"text": "because"},
        ["because", None, None],
    ),
    (
        'api.query_llm("x", parse_json=True)',
        {"llm": {"prompt": "x"}},
        ' {"a": 1} ',
        [' {"a": 1} ', {"a": 1}, None],
    ),
    (
        'api.query_llm("x", parse_json=True)',
        {"llm": {"prompt": "x"}},
        "Sure:\n```json\n[1]\n```",
        ["Sure:\n```json\n[1]\n```", [1], None],
    ),
    (
        'api.query_llm("x", schema={"a": 1})',
        {"llm": {"prompt": "x", "schema": {"a": 1}}},
        {"city": "Bern"},
        ['{"city": "Bern"}', {"city": "Bern"}, None],
    ),
    (
        'api.web_search("tea", limit=2)',
        {"search": {"query": "tea", "limit": 2}},
        {
            "results": [
                {"title": "Tea", "url": "u", "snippet": "hot"},
                {"title": "T", "url": "v", "snippet": ""},
            ]
        },
        [
            "Tea: u\nhot\n\nT: v",
            [
                {"title": "Tea", "url": "u", "snippet": "hot"},
                {"title": "T", "url": "v", "snippet": ""},
            ],
            None,
        ],
    ),
    (
        'api.web_fetch("u")',
        {"fetch": {"url": "u", "as": "markdown"}},
        {"url": "u", "text": "# T"},
        ["# T", {"url": "u", "text": "# T"}, None],
    ),
    (
        'api.web_fetch("u", selector="h1", retry={"times": 2})',
        {"fetch": {"url": "u", "as": "selector", "selector": "h1", "retry": {"times": 2}}},
        {"url": "u", "text": ""},
        ["", {"url": "u", "text": ""}, None],
    ),
    (
        'api.http("POST", "u", json={"a": None}, headers={"H": "1"})',
        {"http": {"method": "POST", "url": "u", "json": {"a": None}, "headers": {"H": "1"}}},
        {"status": 201, "headers": {}, "json": {"id": 1}},
        ['{"id": 1}', {"status": 201, "headers": {}, "json": {"id": 1}}, None],
    ),
    (
        'api.http("GET", "u", query={"q": 1}, timeout_s=3)',
        {"http": {"method": "GET", "url": "u", "query": {"q": 1}, "timeout_s": 3}},
        {"status": 404, "headers": {}, "text": "gone"},
        ["gone", {"status": 404, "headers": {}, "text": "gone"}, "HTTP 404: gone"],
    ),
    (
        'api.ask("which?", choices=["a"])',
        {"ask": {"question": "which?", "choices": ["a"]}},
        "a",
        ["a", "a", None],
    ),
    ("api.sleep(2)", {"sleep": {"seconds": 2}}, 99, ["99", 99, None]),
    ("api.now()", {"now": {}}, 99, ["99", 99, None]),
]


@pytest.mark.parametrize(
    ("call", "effect", "answer", "seen"), CALLS, ids=[call[0] for call in CALLS]
)
def test_each_step_is_one_effect_and_answers_alike(
    call: str, effect: Any, answer: Any, seen: Any
) -> None:
    """`text`, `data` and `error`, by attribute and by key, for every method."""
    assert one(call, answer) == (effect, seen)


def test_a_script_step_tells_why_it_failed() -> None:
    """The output of a failed script is its text; exit code and last words are its error."""
    base = {
        "stdout": "out",
        "stderr": "bad\n",
        "exitCode": 2,
        "durationMs": 1,
        "truncated": False,
        "timedOut": False,
    }
    effect, seen = one('api.script("ls", parameters={"a": 1})', {**base, "success": False})
    assert effect == {"script": {"language": "bash", "body": "ls", "parameters": {"a": 1}}}
    assert (seen[0], seen[2]) == ("out", "exit code 2: bad")
    assert one('api.script("ls")', {**base, "success": True})[1][2] is None


@pytest.mark.parametrize("call", [call for call, *_ in CALLS])
def test_a_failed_step_is_looked_at_not_caught(call: str) -> None:
    """A refusal or a failure arrives as `error`; the script goes on."""
    assert one(call, fails("not allowed", "policy"))[1] == ["", None, "not allowed"]


def test_an_answer_that_is_not_json_is_an_error() -> None:
    """`parse_json` never invents data."""
    seen = one('api.query_llm("x", parse_json=True)', "no idea")[1]
    assert (seen[0], seen[1]) == ("no idea", None)
    assert "is not JSON" in seen[2]


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("None", {"success": True, "message": "Script completed", "data": None}),
        ("7", {"success": True, "message": "7", "data": 7}),
        ("'text'", {"success": True, "message": "text", "data": "text"}),
        ("{'a': (1, 2)}", {"success": True, "message": "{'a': [1, 2]}", "data": {"a": [1, 2]}}),
        (
            "{'success': True, 'message': 'm', 'data': 1}",
            {"success": True, "message": "m", "data": 1},
        ),
        (
            "{'success': False, 'error': 'e'}",
            {"success": False, "message": "e", "data": None, "error": "e"},
        ),
        ("{'success': 0}", {"success": False, "message": "", "data": None}),
    ],
)
def test_whatever_is_returned_becomes_a_result(value: str, result: object) -> None:
    """A value without `success` is wrapped; a result is completed."""
    assert drive(f"async def execute(api, params):\n    return {value}\n")[1] == result


def test_an_exception_is_a_failure_that_says_where() -> None:
    """The exception's text is the message; the error has flow, cause, step and the next command."""
    _, result = drive(
        """
        async def execute(api, params):
            await api.now()
            raise ValueError("nothing to do")
        """,
        5,
    )
    assert (result["success"], result["message"]) == (False, "nothing to do")
    assert (
        result["error"]
        == "demo: ValueError: nothing to do (after step 1 (now)); mend it with 'uncaged-workflow edit demo --script FILE'"
    )
    assert (
        drive("async def execute(api, params):\n    raise KeyError\n")[1]["message"] == "KeyError: "
    )


@pytest.mark.parametrize("value", ["{1, 2}", "object()", "float('nan')", "b'x'"])
def test_a_result_that_is_no_json_is_a_failure(value: str) -> None:
    """The message says so, and the thread does not break."""
    result = drive(f"async def execute(api, params):\n    return {value}\n")[1]
    assert result["success"] is False
    assert "not JSON data" in result["error"]


@pytest.mark.parametrize(
    "statement",
    [
        "params.a = 1",
        "params['a'] = 1",
        "params.list.append(1)",
        "params.deep.inner['x'] = 2",
        "api.http = 1",
        "del params.a",
        "found.data['x'] = 1",
    ],
)
def test_nothing_that_is_given_can_be_changed(statement: str) -> None:
    """Parameters, the api and answers are read-only, deeply."""
    script = f"""
    async def execute(api, params):
        found = await api.web_fetch("u")
        {statement}
    """
    params = {"a": 0, "list": [], "deep": {"inner": {}}}
    result = drive(script, {"url": "u", "text": ""}, params=params)[1]
    assert result["success"] is False
    assert "TypeError" in result["error"] or "AttributeError" in result["error"]


def test_printing_is_kept_for_the_result() -> None:
    """A script has no terminal; what it prints is its log, up to a limit."""
    _, result = drive(
        "async def execute(api, params):\n    print('a', 1, sep='-')\n    print('b', end='!')\n    return 1\n"
    )
    assert result == {"success": True, "message": "1", "data": 1, "log": ["a-1", "b!"]}
    _, result = drive(
        "async def execute(api, params):\n    for n in range(5000):\n        print('x' * 5000)\n"
    )
    assert (len(result["log"]), len(result["log"][0])) == (1000, 2000)


GATHER = """
async def twice(api, name):
    first = await api.web_fetch(name)
    if first.text == "stop":
        return name
    second = await api.web_fetch(first.text)
    return second.text

async def execute(api, params):
    return await api.gather(twice(api, "a"), api.now(), twice(api, "b"))
"""


def test_gathered_steps_go_together() -> None:
    """All that can go on at once is one effect; helpers go on in rounds; results come in order."""
    effects, result = drive(
        GATHER,
        [
            {"outcome": {"url": "a", "text": "a2"}},
            {"outcome": 5},
            {"error": {"kind": "web", "message": "no"}},
        ],
        [{"outcome": {"url": "a2", "text": "A"}}, {"outcome": {"url": "", "text": "B"}}],
    )
    assert [[list(effect) for effect in round_["all"]["effects"]] for round_ in effects] == [
        [["fetch"], ["now"], ["fetch"]],
        [["fetch"], ["fetch"]],
    ]
    assert effects[1]["all"]["effects"][1]["fetch"]["url"] == ""
    assert result["data"] == ["A", {"error": None, "text": "5", "data": 5}, "B"]


def test_gathering_what_cannot_stand_together() -> None:
    """A person is asked alone; one step needs no `all`; gathers in gathers are one; nothing
    gathered is nothing.
    """
    script = """
    async def execute(api, params):
        empty = await api.gather()
        alone = await api.gather(api.now())
        inner = await api.gather(api.gather(api.now(), api.sleep(1)), api.ask("a?"))
        return [empty, alone[0].data, [one.data for one in inner[0]], inner[1].data]
    """
    effects, result = drive(script, 1, [{"outcome": 2}, {"outcome": 3}], "yes")
    assert [list(effect) for effect in effects] == [["now"], ["all"], ["ask"]]
    assert result["data"] == [[], 1, [2, 3], "yes"]


def test_an_exception_in_one_helper_waits_for_the_others() -> None:
    """No step of another is left unawaited; then it is raised."""
    script = """
    async def bad(api):
        raise ValueError("bad")

    async def good(api):
        print((await api.now()).data)

    async def execute(api, params):
        await api.gather(bad(api), good(api))
    """
    _, result = drive(script, 8)
    assert (result["success"], result["message"], result["log"]) == (False, "bad", ["8"])


def test_loops_comprehensions_and_helpers_work() -> None:
    """Plain Python between the steps."""
    script = """
    import json

    def double(text):
        return text * 2

    async def execute(api, params):
        pages = [await api.web_fetch(f"u{n}") for n in range(2)]
        total = 0
        while total < 3:
            total += (await api.now()).data
        return json.dumps({"pages": [double(page.text) for page in pages], "total": total})
    """
    effects, result = drive(script, {"url": "", "text": "a"}, {"url": "", "text": "b"}, 2, 2)
    assert len(effects) == 4
    assert result["data"] == '{"pages": ["aa", "bb"], "total": 4}'


def test_an_engine_error_that_is_none_of_ours_goes_through() -> None:
    """An unknown exception ends the bundle: only failures of effects become answers."""
    with pytest.raises(MemoryError):
        drive("async def execute(api, params):\n    await api.now()\n", MemoryError())


LOOKED = [
    "found.error",
    "found['error']",
    "found.get('error')",
    "dict(found)",
    "{**found}",
    "list(found.items())",
    "str(found)",
    "[key for key in found]",
]
IGNORED = ["found.text", "found.data", "bool(found)", "'error' in found", "len(found)"]
CALL = 'api.call_action("player", "create")'


def ignoring(look: str, call: str = CALL) -> str:
    result = {"success": True, "message": "all well", "data": 7}
    return f"async def execute(api, params):\n    found = await {call}\n    {look}\n    return {result}\n"


@pytest.mark.parametrize("look", IGNORED)
def test_a_failed_call_that_the_script_never_looked_at_makes_it_unsuccessful(look: str) -> None:
    """A child flow that failed is named in the message, and the result is no success, whatever the
    script says.
    """
    _, result = drive(
        ignoring(look),
        {"success": False, "message": "no disc", "data": None, "threadId": "x", "hash": "y"},
    )
    assert result == {
        "success": False,
        "message": "flow player: no disc (the script did not look at this error; its own message was: all well)",
        "data": 7,
    }
    _, thrown = drive(ignoring(look), fails("player killed: no message", "flow"))
    assert (thrown["success"], "flow player: player killed: no message (" in thrown["message"]) == (
        False,
        True,
    )


@pytest.mark.parametrize("look", LOOKED)
def test_a_failed_call_that_the_script_looked_at_is_its_own_affair(look: str) -> None:
    """A script that reads the error, or all of the answer, may succeed after a failed call."""
    _, result = drive(
        ignoring(look),
        {"success": False, "message": "no disc", "data": None, "threadId": "x", "hash": "y"},
    )
    assert (result["success"], result["message"]) == (True, "all well")


def test_a_failed_call_that_is_returned_as_it_came_is_named() -> None:
    """A script that hands an answer on without a look has not looked; a successful one is handed on
    as ever.
    """
    script = f"async def execute(api, params):\n    return await {CALL}\n"
    _, failed = drive(
        script, {"success": False, "message": "no disc", "data": None, "threadId": "x", "hash": "y"}
    )
    assert (
        failed["success"],
        failed["message"].startswith("flow player: no disc (the script did not look at this error"),
    ) == (False, True)
    _, done = drive(
        script, {"success": True, "message": "made", "data": 7, "threadId": "x", "hash": "y"}
    )
    assert done["success"] is True


def test_every_failed_call_of_a_gather_is_named() -> None:
    """Of several calls, those that failed and were not looked at are named, in order."""
    script = """
    async def execute(api, params):
        good, bad, seen, worse = await api.gather(
            api.http("GET", "http://a/"), api.http("GET", "http://b/"), api.now(), api.call_action("player")
        )
        return seen.error
    """
    ok = {"outcome": {"status": 200, "headers": {}, "json": 1}}
    answers = [
        ok,
        {"outcome": {"status": 503, "headers": {}, "body": "busy"}},
        {"error": {"kind": "now"}},
        {"error": {"message": "gone"}},
    ]
    _, result = drive(script, answers)
    assert result["success"] is False
    assert result["message"].startswith(
        "http http://b/: HTTP 503: busy; flow player: gone (the script did not look at"
    )


def test_a_script_that_says_itself_that_it_failed_keeps_its_message() -> None:
    """An unsuccessful result is left as the script made it."""
    script = f"async def execute(api, params):\n    await {CALL}\n    return {{'success': False, 'message': 'mine'}}\n"
    _, result = drive(
        script, {"success": False, "message": "no disc", "data": None, "threadId": "x", "hash": "y"}
    )
    assert (result["success"], result["message"]) == (False, "mine")
