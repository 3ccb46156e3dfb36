"""Recipes of each shape become bundles that keep every fact, and each mistake in one is reported
with its place.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from uncaged_bundles.builders.recipes.flows import ForeignFlow, ScriptFlow, TaskFlow
from uncaged_bundles.builders.recipes.recipe import parse_recipe, read_recipe, safe_name
from uncaged_bundles.builders.recipes.recipe_flow import build_flow, flow_of, read_script_file
from uncaged_bundles.builders.recipes.recipe_sandbox import portable_path, read_sandbox
from uncaged_bundles.errors import BundleError
from uncaged_bundles.validation.validate import read_bundle

PATH = {
    "name": "path",
    "type": "path",
    "required": False,
    "description": "where",
    "default": ".",
    "validation": {"pathMustExist": True},
}
SCRIPT: dict[str, Any] = {
    "version": 1,
    "actionName": "listFiles",
    "displayName": "List files",
    "description": "List files.",
    "parameters": [
        PATH,
        {"name": "limit", "type": "number", "required": False, "description": "", "default": "10"},
    ],
    "script": {
        "language": "bash",
        "body": 'ls "$PARAM_PATH" | head -n "$PARAM_LIMIT"\n',
        "expectedOutputFormat": "text",
    },
    "grammarPatterns": [
        {
            "pattern": "list files in $(path:wildcard)",
            "isAlias": False,
            "examples": ["list files in /tmp"],
        },
        {"pattern": "dir $(path:wildcard)", "isAlias": True, "examples": []},
    ],
    "sandbox": {
        "allowedCmdlets": ["ls", "head"],
        "allowedPaths": ["$env:USERPROFILE\\Documents\\*", "/data"],
        "allowedModules": [],
        "maxExecutionTime": 30,
        "networkAccess": False,
    },
    "source": {
        "type": "reasoning",
        "timestamp": "2026-01-02T03:04:05Z",
        "originalRequest": "what is in here",
    },
}
TASK: dict[str, Any] = {
    "name": "createTopSongsPlaylist",
    "description": "Make a playlist.",
    "parameters": [
        {"name": "genre", "type": "string", "required": True, "description": "Music genre"},
        {
            "name": "quantity",
            "type": "number",
            "required": False,
            "default": 10,
            "description": "Number of songs",
        },
        {
            "name": "loud",
            "type": "boolean",
            "required": False,
            "default": "false",
            "description": "",
        },
    ],
    "script": "async def execute(api, params):\n    return params.genre, params.quantity, params.loud\n",
    "grammarPatterns": [
        "create (a)? $(genre:wildcard) playlist (with)? $(quantity:number) (songs)?"
    ],
}
WEB: dict[str, Any] = {
    "name": "searchForProduct",
    "version": 3,
    "description": "Search a shop.",
    "parameters": {
        "product": {
            "type": "string",
            "required": True,
            "description": "what",
            "valueOptions": ["tea", "salt"],
        }
    },
    "script": "async function execute(browser, params) { await browser.goBack(); }",
    "grammarPatterns": ["search for $(product:wildcard)"],
    "scope": {"type": "site", "domains": ["shop.example"]},
    "source": {"type": "goal-driven", "timestamp": "2026-01-02T03:04:05Z"},
}
TYPESCRIPT = "async function execute(api: TaskFlowScriptAPI, params: FlowParams) {\n  return { success: true };\n}\n"


def changed(recipe: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**recipe, **changes}


def test_a_script_recipe_keeps_every_fact() -> None:
    """Descriptor, policy, sentences, source; and the flow comes back out of its bundle, byte for
    byte.
    """
    flow = parse_recipe(SCRIPT)
    assert isinstance(flow, ScriptFlow)
    bundle = read_bundle(build_flow(flow).source, check_schemas=True)
    raw = bundle.descriptor.raw
    assert (raw["name"], raw["displayName"], raw["kind"]) == ("list-files", "List files", "script")
    assert raw["policy"] == {
        "script": {
            "executables": ["ls", "head"],
            "read": ["$HOME/Documents", "/data"],
            "timeout_s": 30,
        }
    }
    assert raw["patterns"] == ["list files in $(path:wildcard)", "dir $(path:wildcard)"]
    assert (raw["aliases"], raw["examples"]) == (
        ["dir $(path:wildcard)"],
        [{"sentence": "list files in /tmp"}],
    )
    assert (
        raw["source"]
        == "reasoning, timestamp 2026-01-02T03:04:05Z, originalRequest what is in here"
    )
    properties = bundle.descriptor.parameters["properties"]
    assert properties == {
        "path": {
            "type": "string",
            "format": "path",
            "description": "where",
            "pathMustExist": True,
            "default": ".",
        },
        "limit": {"type": "number", "default": 10},
    }
    again = flow_of(bundle)
    assert again is not None
    assert build_flow(again).source == bundle.source


def test_a_task_recipe_keeps_its_script_word_for_word() -> None:
    """The bundle has the script as it was written; text defaults have their type."""
    flow = parse_recipe(TASK)
    assert isinstance(flow, TaskFlow)
    built = build_flow(flow)
    assert TASK["script"] in built.source.decode()
    bundle = read_bundle(built.source, check_schemas=True)
    assert (bundle.descriptor.name, bundle.descriptor.kind) == ("create-top-songs-playlist", "task")
    schema = bundle.descriptor.parameters
    assert (schema["required"], schema["properties"]["loud"]["default"]) == (["genre"], False)  # type: ignore[index]
    again = flow_of(bundle)
    assert again is not None
    assert build_flow(again).source == built.source


@pytest.mark.parametrize(
    ("recipe", "language", "kind"),
    [(changed(TASK, script=TYPESCRIPT), "typescript", "task"), (WEB, "javascript", "web")],
)
def test_what_is_not_run_here_is_kept(recipe: dict[str, Any], language: str, kind: str) -> None:
    """A flow in another language is stored whole; it names its language and the way to make
    it run.
    """
    flow = parse_recipe(recipe)
    assert isinstance(flow, ForeignFlow)
    built = build_flow(flow)
    bundle = read_bundle(built.source, check_schemas=True)
    assert (bundle.descriptor.raw["unsupported"], bundle.descriptor.kind) == (language, kind)
    assert "edit" in built.notes[-1]
    again = flow_of(bundle)
    assert isinstance(again, ForeignFlow)
    assert (again.text, again.scope) == (recipe["script"], recipe.get("scope"))
    assert build_flow(again).source == built.source


def test_the_same_recipe_gives_the_same_bytes() -> None:
    """A recipe builds to equal bytes each time, and from any equal JSON document."""
    assert {build_flow(parse_recipe(SCRIPT)).source for _ in range(3)} == {
        build_flow(parse_recipe(json.loads(json.dumps(SCRIPT)))).source
    }


WRONG: list[tuple[object, str]] = [
    ([], "recipe: must be a mapping"),
    ({}, "a script flow has 'actionName'"),
    (changed(SCRIPT, version=2), "recipe.version: 2 is not known here"),
    (changed(SCRIPT, surprise=1), "recipe.surprise: unknown key"),
    (changed(SCRIPT, description=3), "recipe.description: must be text"),
    (changed(SCRIPT, script="ls"), "recipe.script: must be a mapping"),
    (
        changed(SCRIPT, script={"language": "perl", "body": "x"}),
        "recipe.script.language: 'perl' is not one of bash, python, powershell",
    ),
    (changed(SCRIPT, script={"language": "bash", "body": " \n"}), "recipe.script.body: is empty"),
    (
        changed(SCRIPT, script={"language": "bash", "body": "a\0"}),
        "recipe.script.body: line 1: a NUL",
    ),
    (
        changed(SCRIPT, script={"language": "bash", "body": "x" * 102_401}),
        "has 102,401 bytes; a script has at most 102,400",
    ),
    (changed(SCRIPT, sandbox={"allowedPath": []}), "recipe.sandbox.allowedPath: unknown key"),
    (
        changed(SCRIPT, sandbox={"maxExecutionTime": -1}),
        "maxExecutionTime: must be a positive number",
    ),
    (changed(SCRIPT, sandbox={"networkAccess": "no"}), "networkAccess: must be True or False"),
    (
        changed(SCRIPT, parameters=[PATH, {**PATH, "name": "Path"}]),
        "'Path' and 'path' differ only in case",
    ),
    (changed(SCRIPT, parameters=[PATH, PATH]), "the parameter 'path' occurs twice"),
    (
        changed(SCRIPT, parameters=[{"name": "../x"}]),
        "recipe.parameters[0].name: '../x' is no name",
    ),
    (
        changed(SCRIPT, parameters=[{"name": "n", "type": "date"}]),
        "parameters[0].type: 'date' is not one of",
    ),
    (
        changed(SCRIPT, parameters=[{"name": "n", "type": "number", "default": "x"}]),
        "parameters[0].default: 'x' is no number",
    ),
    (
        changed(SCRIPT, parameters=[{"name": "n", "validation": {"pattern": "("}}]),
        "validation.pattern: '(' is no regular expression",
    ),
    (
        changed(SCRIPT, parameters=[{"name": "n", "validation": {"pathMustExist": True}}]),
        "is for paths; this parameter is a string",
    ),
    (
        changed(
            SCRIPT,
            parameters=[{"name": "n", "default": "c", "validation": {"allowedValues": ["a"]}}],
        ),
        "not among the allowed values a",
    ),
    (
        changed(
            SCRIPT, parameters=[{"name": "n", "default": "c", "validation": {"pattern": "^a"}}]
        ),
        "does not match the pattern",
    ),
    (
        changed(SCRIPT, grammarPatterns=["list $(nothing:wildcard)"]),
        "grammarPatterns[0].pattern: column 6: there is no parameter 'nothing'",
    ),
    (changed(SCRIPT, actionName="../.."), "gives no flow name"),
    (changed(SCRIPT, actionName=""), "is no name"),
    (changed(SCRIPT, actionName="a\0b"), "is no name"),
    (changed(SCRIPT, actionName="😀"), "gives no flow name"),
    (changed(TASK, script=["x"]), "recipe.script: must be text"),
    (changed(TASK, policy={"http": {"host": []}}), "policy.http.host"),
    (changed(WEB, scope="all"), "recipe.scope: must be a mapping"),
]


@pytest.mark.parametrize(("recipe", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_is_wrong_has_its_place(recipe: object, words: str) -> None:
    """A mistake has one message, with the dotted path."""
    with pytest.raises(BundleError) as caught:
        build_flow(parse_recipe(recipe))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "x.json: line 1, column 2: not JSON"),
        (b'{"name": 1, "name": 2}', "the key 'name' occurs twice"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b"\xff", "byte 0 is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b" " * (2 << 20), "a recipe has at most 1,048,576"),
    ],
)
def test_bad_json_is_told_apart(data: bytes, words: str) -> None:
    """Syntax, repeated keys, no number, encoding, depth and size."""
    with pytest.raises(BundleError) as caught:
        read_recipe(data, "x.json")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("listFiles", "list-files"),
        ("My Flow!", "my-flow"),
        ("constructor", "constructor"),
        ("x" * 300, "x" * 60),
        ("9lives", "lives"),
    ],
)
def test_a_name_is_made_safe(text: str, name: str) -> None:
    """Lower-case words, at most sixty characters."""
    assert safe_name(text) == name


def test_windows_paths_are_read() -> None:
    """Variables and separators as here; a star at the end means the directory."""
    assert portable_path("$env:TEMP\\x") == "$TMPDIR/x"
    assert portable_path("/data/*") == "/data"
    assert portable_path("/*") == "/*"


def test_commands_are_inferred_when_nobody_says_them() -> None:
    """Without a list, the script's own commands are asked for; with a list, a note names the
    missing ones.
    """
    flow = parse_recipe(changed(SCRIPT, sandbox={}))
    assert isinstance(flow, ScriptFlow)
    assert flow.policy == {"executables": ["head", "ls"], "read": ["param:path"]}
    assert "seems to need the commands head, ls" in flow.notes[0]
    lacking = parse_recipe(changed(SCRIPT, sandbox={"allowedCommands": ["ls"]}))
    assert "seems to need head, which the sandbox does not allow" in lacking.notes[0]
    assert any(
        "python3 runs whatever program it is given" in note
        for note in build_flow(
            parse_recipe(changed(SCRIPT, sandbox={"allowedCommands": ["python3"]}))
        ).notes
    )


def test_a_shell_inside_a_script_is_named_as_not_inferred() -> None:
    """The commands of `sh -c` are not asked for; a note says that they were not searched for."""
    flow = read_script_file("listing", ".sh", "sh -c 'ls | sort'\nwc -l x\n")
    assert isinstance(flow, ScriptFlow)
    assert flow.policy == {"executables": ["sh", "wc"]}
    note = "sh runs a script of its own: the commands in it are not inferred"
    assert build_flow(flow).notes[-1] == note
    plain = read_script_file("listing", ".sh", "wc -l x\n")
    assert note not in build_flow(plain).notes


def test_a_script_file_is_a_flow() -> None:
    """Parameters, command line and commands come from its text; a file with `execute` is a task."""
    text = '#!/bin/bash\n# Count lines.\nfile=${1:-README.md}\nwc -l "$file"\n'
    flow = read_script_file("count", ".sh", text)
    assert isinstance(flow, ScriptFlow)
    assert (flow.description, flow.arguments) == ("Count lines.", ({"param": "file"},))
    assert flow.policy == {"executables": ["wc"], "read": ["param:file"]}
    task = read_script_file("hello", ".py", "async def execute(api, params):\n    return 'hello'\n")
    assert isinstance(task, TaskFlow)
    assert flow_of(read_bundle(build_flow(task).source)) is not None


@pytest.mark.parametrize(
    ("sandbox", "limits"),
    [
        ({"networkAccess": True}, {"network": ["*"]}),
        ({"networkAccess": "host"}, {"network": "host"}),
        (
            {"allowedDomains": ["a.example"], "privateNetwork": True},
            {"network": ["a.example"], "private": True},
        ),
        ({"privateNetwork": True}, {}),
        ({"tolerate": ["date"]}, {"tolerate": ["date"]}),
        ({"tolerate": True}, {"tolerate": True}),
    ],
)
def test_a_sandbox_opens_the_network_it_names(
    sandbox: dict[str, object], limits: dict[str, object]
) -> None:
    """Each key for networks and refusals becomes the limit of the same meaning."""
    policy, _ = read_sandbox(sandbox, "bash", "true", {}, ("sandbox",))
    assert policy == limits
