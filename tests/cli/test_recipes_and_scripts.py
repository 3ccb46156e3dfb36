"""Recipes and scripts through the real command: taken in, run, changed, tested, refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]

RECIPE: dict[str, Any] = {
    "version": 1,
    "actionName": "countLines",
    "displayName": "Count lines",
    "description": "Count the lines of a file.",
    "parameters": [
        {
            "name": "path",
            "type": "path",
            "required": True,
            "description": "the file",
            "validation": {"pathMustExist": True},
        },
        {
            "name": "times",
            "type": "number",
            "required": False,
            "description": "how often",
            "default": "1",
        },
    ],
    "script": {
        "language": "bash",
        "body": 'for n in $(seq "$PARAM_TIMES"); do wc -l < "$PARAM_PATH"; done\n',
        "expectedOutputFormat": "text",
    },
    "grammarPatterns": [
        {"pattern": "count (the)? lines of $(path:wildcard)", "isAlias": False, "examples": []}
    ],
    "examples": [
        {
            "sentence": "count the lines of /etc/passwd",
            "params": {"path": "/etc/passwd"},
            "expect": {"matches": "^[1-9][0-9]*$"},
        },
        {"sentence": "count nothing", "params": {"path": "/nowhere"}},
        {"sentence": "count something"},
        {
            "sentence": "count the lines of a directory",
            "params": {"path": "/etc/passwd"},
            "expect": {"equals": "is a directory"},
        },
        {"sentence": "count the lines of /etc/group", "params": {"path": "/etc/group"}},
    ],
    "sandbox": {"allowedCommands": ["wc", "seq"], "maxExecutionTime": 20, "networkAccess": False},
}


@pytest.fixture
def added(tmp_path: Path, command: Command) -> str:
    """The recipe above as a flow; returns its hash."""
    path = tmp_path / "count.json"
    path.write_text(json.dumps(RECIPE))
    done = command("add", "count-lines", str(path), "--accept")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().partition("@")[2]


def test_a_recipe_is_added_and_run(command: Command, tmp_path: Path, added: str) -> None:
    """A recipe's permissions are shown; values in text form get their type, names match in any
    case; the result is the script's output.
    """
    (tmp_path / "three.txt").write_text("a\nb\nc\n")
    done = command(
        "run", "count-lines", "--param", "PATH=three.txt", "--param", "times=2", "--json"
    )
    assert done.returncode == 0, done.stderr
    end = json.loads(done.stdout.splitlines()[-1])
    assert "3\\n3" in json.dumps(end)
    help_flow = command("run", "count-lines", "--help-flow").stdout
    assert "Count the lines of a file." in help_flow
    assert "path (path, must exist, required): the file" in help_flow
    assert "times (number, default 1): how often" in help_flow
    shown = command("show", "count-lines").stdout
    assert "count (the)? lines of $(path:wildcard)" in shown
    assert "executables: wc, seq" in shown
    [listed] = json.loads(command("list", "--json").stdout)["flows"]
    assert (listed["source"], listed["usageCount"], listed["hash"]) == ("person", 1, added)
    assert listed["lastUsedMs"] >= listed["createdMs"]


def test_what_is_missing_is_told_before_anything_starts(command: Command, added: str) -> None:
    """A missing parameter, a path that does not exist, a name that is none; no thread is made."""
    assert added
    for words, message in (
        ([], "path: is required (the file)"),
        (["--param", "path=/nowhere"], "the path '/nowhere' does not exist"),
        (
            ["--param", "path=/etc", "--param", "times=x"],
            "parameter 'times' must be number; 'x' is not",
        ),
        (["--param", "paht=/etc"], "no parameter 'paht'; did you mean 'path'?"),
    ):
        done = command("run", "count-lines", *words)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert json.loads(command("threads", "--json").stdout) == []
    missing = command("run", "count-linse")
    assert (missing.returncode, "did you mean 'count-lines'?" in missing.stderr) == (5, True)


def test_examples_are_compared_with_what_they_expect(command: Command, added: str) -> None:
    """Each example runs by itself: wrong content fails, one without an expectation says so, a
    failure gives exit code 1.
    """
    assert added
    done = command("test", "count-lines")
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.splitlines()[:5]] == [
        "passed",
        "failed",
        "skipped",
        "failed",
        "ran",
    ]
    assert (
        done.stdout.splitlines()[5]
        == "2 of 4 examples did not fail, 1 without an expectation, 1 skipped"
    )
    assert "the path '/nowhere' does not exist" in done.stderr
    assert 'and should be "is a directory"' in done.stderr
    assert "the example has no `expect`" in done.stderr


def test_an_edit_is_a_new_version(command: Command, tmp_path: Path, added: str) -> None:
    """Script, parameters, policy and patterns change; what widens needs a yes; patterns and
    creation time stay.
    """
    created = json.loads(command("list", "--json").stdout)["flows"][0]["createdMs"]
    script = tmp_path / "new.sh"
    script.write_text('cat "$PARAM_PATH" | tail -n "$PARAM_TIMES"\n')
    refused = command(
        "edit",
        "count-lines",
        "--script",
        str(script),
        "--allow-command",
        "cat",
        "--allow-command",
        "tail",
    )
    assert (refused.returncode, "now also cat, tail (was wc, seq)" in refused.stderr) == (
        1,
        True,
    ), refused.stderr
    options = (
        "--allow-command",
        "cat",
        "--allow-command",
        "tail",
        "--set-parameter",
        "times.default=2",
        "--pattern",
        "end of $(path:path)",
    )
    done = json.loads(
        command(
            "edit", "count-lines", "--script", str(script), *options, "--accept", "--json"
        ).stdout
    )
    assert (done["before"], done["changed"]) == (added, True)
    (tmp_path / "three.txt").write_text("a\nb\nc\n")
    assert "b\nc" in command("run", "count-lines", "--param", "path=three.txt").stdout
    shown = json.loads(command("show", "count-lines", "--json").stdout)
    assert shown["descriptor"]["patterns"] == [
        "count (the)? lines of $(path:wildcard)",
        "end of $(path:path)",
    ]
    assert shown["descriptor"]["parameters"]["properties"]["times"]["default"] == 2
    assert json.loads(command("list", "--json").stdout)["flows"][0]["createdMs"] == created
    assert command("rollback", "count-lines").returncode == 0
    assert json.loads(command("show", "count-lines", "--json").stdout)["hash"] == added


def test_an_edit_says_what_it_cannot_do(
    command: Command, tmp_path: Path, added: str, flow: Callable[[str], str]
) -> None:
    """Nothing to change, a field that is none, a parameter that is none, a flow of another
    origin.
    """
    assert added
    flow("echo")
    (tmp_path / "task.py").write_text("async def execute(api, params):\n    return 1\n")
    for words, message in (
        (["count-lines"], "nothing to change"),
        (["count-lines", "--set-parameter", "times.size=3"], "is not NAME.FIELD=VALUE"),
        (
            ["count-lines", "--set-parameter", "times.allowedValues=[1"],
            "allowedValues must be a JSON list or values separated by commas",
        ),
        (
            ["count-lines", "--remove-parameter", "tims"],
            "has no parameter 'tims'; did you mean 'times'?",
        ),
        (["count-lines", "--pattern", "x $(nothing:word)"], "there is no parameter 'nothing'"),
        (["count-lines", "--script", str(tmp_path / "task.py")], "needs a script, which"),
        (["count-lines", "--allow-flow", "echo"], "--allow-flow is for task flows"),
        (["echo", "--description", "x"], "was not built from a recipe or a script"),
    ):
        done = command("edit", *words)
        assert (done.returncode in (1, 2, 5), message in done.stderr) == (True, True), done.stderr


def test_a_script_file_is_taken_in(command: Command, tmp_path: Path) -> None:
    """Inferred permissions are listed for confirmation; the same file again changes nothing;
    another file under the name is a new version.
    """
    path = tmp_path / "size.sh"
    path.write_text(
        '#!/bin/bash\n# Say how large a file is.\nfile=${1:-/etc/passwd}\nwc -c "$file"\n'
    )
    refused = command("add", "size", str(path))
    assert refused.returncode == 1
    for words in (
        "parameters, by its text: file",
        "commands that it seems to need: wc",
        "executables: wc; read: param:file",
    ):
        assert words in refused.stderr
    assert command("add", "size", str(path), "--accept").returncode == 0
    assert "nothing was changed" in command("add", "size", str(path)).stdout
    path.write_text(path.read_text() + "\necho more\n")
    other = command("add", "size", str(path))
    assert (other.returncode, "asks to be allowed" in other.stderr) == (0, False), (
        "it may do no more than the version before"
    )
    assert len(command("history", "size").stdout.splitlines()) == 3
    done = command("run", "size", "--param", "file=/etc/passwd")
    assert (done.returncode, "/etc/passwd" in done.stdout) == (0, True)


def test_a_task_file_is_taken_in(command: Command, tmp_path: Path) -> None:
    """A task's policy comes from its own steps; a broken rule has the script's line and column."""
    path = tmp_path / "clock.py"
    path.write_text(
        "async def execute(api, params):\n    print('asked')\n    return (await api.now()).data > 0\n"
    )
    done = command("add", "clock", str(path), "--accept")
    assert (done.returncode, "now: may read the clock" in done.stderr) == (0, True), done.stderr
    assert "True" in command("run", "clock").stdout
    path.write_text("async def execute(api, params):\n    import os\n")
    broken = command("add", "other", str(path), "--accept")
    assert (broken.returncode, "line 2, column 5: import of 'os'" in broken.stderr) == (1, True)


def test_what_is_not_run_here_is_listed_and_refused(command: Command, tmp_path: Path) -> None:
    """A TypeScript task is kept; `list` and `show` say so; a run says what to do, and doing it
    makes it run.
    """
    recipe = {
        "name": "hello",
        "description": "Say hello.",
        "parameters": [{"name": "who", "type": "string", "required": True, "description": ""}],
        "script": "async function execute(api, params) {\n  return { success: true };\n}",
        "grammarPatterns": ["greet $(who:wildcard)"],
    }
    path = tmp_path / "hello.json"
    path.write_text(json.dumps(recipe))
    assert command("add", "hello", str(path)).returncode == 0
    assert "unsupported: typescript" in command("list").stdout
    assert "unsupported: typescript" in command("show", "hello").stdout
    refused = command("run", "hello", "--param", "who=you")
    assert (
        refused.returncode,
        "uncaged-workflow edit hello --script FILE.py" in refused.stderr,
    ) == (1, True)
    script = tmp_path / "hello.py"
    script.write_text("async def execute(api, params):\n    return f'hello {params.who}'\n")
    assert command("edit", "hello", "--script", str(script)).returncode == 0
    assert "hello you" in command("run", "hello", "--param", "who=you").stdout
    assert "unsupported" not in command("list").stdout


FILES: list[tuple[str, bytes | None, int, str]] = [
    ("nothing.sh", None, 5, "no file"),
    ("empty.sh", b"", 2, "is empty"),
    ("large.sh", b"x" * 102_401, 2, "has 102,401 bytes; a script has at most 102,400"),
    ("flow.txt", b"ls\n", 2, ".txt is not one of .py, .json, .sh, .bash and .ps1"),
    ("words.txt", b"not Python at all\n", 2, ".txt is not one of .py, .json, .sh, .bash and .ps1"),
    ("bundle.txt", b'descriptor = {"contract": 1}\n', 1, "descriptor"),
    (
        "script.json",
        b'{"actionName": "x", "description": "d", "script": {"language": "python", "body": "print(1)\\nif x"}}',
        1,
        "line 2, column 5: not Python",
    ),
    ("latin.sh", b"echo \xff\n", 2, "is not UTF-8 at byte 5"),
    ("broken.json", b'{"name": ', 1, "not JSON"),
    ("list.json", b"[]", 1, "must be a mapping"),
]


@pytest.mark.parametrize("case", FILES, ids=[case[0] for case in FILES])
def test_a_file_that_is_no_flow_is_told_apart(
    command: Command, tmp_path: Path, case: tuple[str, bytes | None, int, str]
) -> None:
    """Missing, empty, too large, of another kind, of another encoding, wrong inside: each its own
    message.
    """
    name, content, code, message = case
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = command("add", "some-flow", name, "--accept")
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize("name", ["../x", "", "😀", "x" * 300, "A_b"])
def test_an_unsafe_name_is_refused(command: Command, tmp_path: Path, name: str) -> None:
    """Nothing is stored under it."""
    (tmp_path / "x.sh").write_text("true\n")
    done = command("add", name, "x.sh", "--accept")
    assert done.returncode == 2
    assert json.loads(command("list", "--json").stdout)["flows"] == []
