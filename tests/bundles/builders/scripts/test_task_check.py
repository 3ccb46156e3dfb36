"""The gate for task scripts: what passes, what is refused with line and column, and what is
inferred.
"""

from __future__ import annotations

import ast

import pytest
from uncaged_bundles.builders.scripts.task_check import (
    check_script,
    computed_targets,
    infer_policy,
    unused_parameters,
)
from uncaged_bundles.errors import BundleError

HEAD = "async def execute(api, params):\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("x = (", "line 1, column 5: not Python"),
        ("x = 1", "there is no function 'execute'"),
        ("def execute(api, params):\n    pass", "line 1, column 1: 'execute' is not async"),
        ("async def execute(api):\n    pass", "it takes exactly (api, params)"),
        ("async def execute(params, api):\n    pass", "it takes exactly (api, params)"),
        (HEAD + "    yield 1", "a task script awaits its steps instead"),
        (
            HEAD + "    pass\n" + HEAD + "    pass",
            "line 3, column 1: 'execute' is defined a second time",
        ),
        (HEAD + "    eval('1')", "line 2, column 5: 'eval' is refused"),
        (HEAD + "    import os", "line 2, column 5: import of 'os'"),
        (
            "from subprocess import run\n" + HEAD + "    pass",
            "line 1, column 1: import from 'subprocess'",
        ),
        (HEAD + "    __import__('os')", "'__import__' is refused"),
        (HEAD + "    return api.__class__", "access to '__class__' is refused"),
        (HEAD + "    getattr(api, 'ht' + 'tp')", "'getattr' is refused"),
        (HEAD + "    return globals()['api']", "'globals' is refused"),
        (HEAD + "    open('x')", "'open' is refused"),
        (
            HEAD + "    api.nothing()",
            "line 2, column 5: the api has no 'nothing'; it has: call_action,",
        ),
        (HEAD + "    return drive_task", "line 2, column 12: 'drive_task' belongs to the driver"),
        (
            "def take_step():\n    pass\n" + HEAD + "    pass",
            "line 1, column 1: 'take_step' is the name of a part of the driver",
        ),
        ("Api = 1\n" + HEAD + "    pass", "'Api' is the name of a part of the driver"),
        (
            "descriptor = {}\n" + HEAD + "    pass",
            "'descriptor' is the name of a part of the driver",
        ),
        ("def print():\n    pass\n" + HEAD + "    pass", "'print' is the name of a part"),
        ("count = 0\n" + HEAD + "    global count", "'global' hides"),
    ],
)
def test_a_script_is_refused_with_its_place(script: str, words: str) -> None:
    """Evaluation, imports, dunders, tricks with names, and names of the driver, by syntax tree."""
    with pytest.raises(BundleError) as caught:
        check_script(script, "demo")
    assert words in str(caught.value)
    assert str(caught.value).startswith("demo: line ")


@pytest.mark.parametrize(
    "script",
    [
        HEAD + "    freeze = 1\n    return freeze",
        HEAD + "    text = 'eval(1) __class__'\n    return text",
        "import json, re\nfrom urllib.parse import quote\n"
        + HEAD
        + "    return json.dumps(re.escape(quote('x')))",
        "def helper(step, api):\n    return step\n" + HEAD + "    return helper(1, api)",
    ],
)
def test_good_scripts_pass(script: str) -> None:
    """Words in texts are no code; local names are the script's own; the pure library is there."""
    check_script(script, "demo")


@pytest.mark.parametrize(
    ("body", "unused"),
    [
        ("return params.a", ("b",)),
        ("return params['a'] + params.get('b')", ()),
        ("return helper(params)", ()),
        ("return [*params.items()]", ()),
        ("return 1", ("a", "b")),
        ("return params[api]", ()),
    ],
)
def test_forgotten_parameters_are_told(body: str, unused: tuple[str, ...]) -> None:
    """A parameter is unused if the script neither names it nor hands `params` on as a whole."""
    assert (
        unused_parameters(ast.parse(f"{HEAD}    {body}"), {"properties": {"a": {}, "b": {}}})
        == unused
    )


def test_the_policy_is_what_the_script_names() -> None:
    """Effects, hosts with their port, flows; what is computed is left open and told."""
    tree = ast.parse(
        HEAD
        + """
    await api.web_fetch(f"https://www.example.com/{params.a}")
    await api.http("GET", "http://127.0.0.1:8000/x")
    await api.http(method="GET", url="https://api.example.org?q=" + params.a)
    await api.gather(api.call_action("player", None, {}), api.now())
    await api.query_llm("x")
"""
    )
    assert infer_policy(tree) == {
        "fetch": {"hosts": ["www.example.com"]},
        "http": {"hosts": ["127.0.0.1:8000", "api.example.org"]},
        "all": {},
        "flow": {"names": ["player"]},
        "now": {},
        "llm": {},
    }
    assert computed_targets(tree) == ()
    computed = ast.parse(
        HEAD
        + "    await api.http('GET', f'https://{params.host}/')\n    await api.http('GET', 'https://a.example/')"
    )
    assert infer_policy(computed) == {"http": {}}
    assert computed_targets(computed) == ("http",)
    for cut in ("f'https://exam{params.a}'", "params.url", "'https://example.com' + params.a"):
        assert infer_policy(ast.parse(HEAD + f"    await api.web_fetch({cut})")) == {"fetch": {}}, (
            cut
        )
