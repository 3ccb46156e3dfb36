"""Script flows made of calls: the script runs in bash as the agent's calls did, with any values."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from testbed.traced_calls import edited, ran, traced, wrote
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.errors import RefusedError
from uncaged_capture.forms.script import ScriptCapture, capture_script
from uncaged_capture.wording import worded

Calls = tuple[str, object, str]


def captured(prompt: str, answer: str, *calls: Calls, **named: str) -> ScriptCapture:
    found = capture_script(traced(*calls), name="x", prompt=prompt, answer=answer, named=named)
    parse_recipe(recipe_of(found))
    return found


def recipe_of(found: ScriptCapture) -> Mapping[str, Any]:
    return worded(found.captured.recipe, found.captured.wording)


def play(found: ScriptCapture, directory: Path, **values: str) -> str:
    """Run the script with bash in a directory; return what it prints."""
    parameters = {one.name: str(one.value) for one in found.captured.parameters} | values
    environment = {f"PARAM_{name.upper()}": value for name, value in parameters.items()}
    done = subprocess.run(
        ["bash", "-c", recipe_of(found)["script"]["body"]],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


EVIL = [
    "$(touch evil)",
    "`touch evil`",
    "'; touch evil; '",
    '"; touch evil; "',
    "a\nb",
    "& | ; <>",
    "\\",
    "*",
    "{1..3}",
]


@pytest.mark.parametrize("value", EVIL)
def test_no_value_becomes_code(tmp_path: Path, value: str) -> None:
    """In words, in double quotes, in single quotes, in here documents, in files and edits."""
    (tmp_path / "log").write_text("red\n")
    found = captured(
        "Add the colour red to list",
        "done",
        ran("echo red >> list"),
        ran('printf "%s\\n" "a red b" >> list'),
        ran("printf '%s\\n' 'x red y' >> list"),
        ran("cat >> list <<'EOF'\nthe red $HOME\nEOF"),
        wrote("note", "it's red\n"),
        edited("log", "red", "very red"),
        text="red",
    )
    (tmp_path / "log").write_text(value)
    play(found, tmp_path, text=value)
    assert not (tmp_path / "evil").exists()
    lines = [value, f"a {value} b", f"x {value} y", f"the {value} $HOME"]
    assert (tmp_path / "list").read_text() == "".join(f"{line}\n" for line in lines)
    assert (tmp_path / "note").read_text() == f"it's {value}\n"
    assert (tmp_path / "log").read_text() == f"very {value}"


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("sed -i 's/red/blue/' list", r"^[\w.,@:+%-]*$"),
        ('awk \'$1 == "red" {print > "out"}\' list', r"^[\w.,@:+%-]*$"),
        ("python3 -c \"open('list').write('red')\"", r"^[\w.,@:+%-]*$"),
        ('curl -X POST -d \'{"colour": "red"}\' http://127.0.0.1:1/', r"^[\w.,@:+%-]*$"),
        ("touch red", "^(?!-).*$"),
    ],
)
def test_a_value_within_code_has_plain_characters(command: str, pattern: str) -> None:
    """And one that begins a word of a command does not look like an option."""
    found = captured("Make it red", "done", ran(command))
    [parameter] = recipe_of(found)["parameters"]
    assert parameter["validation"]["pattern"] == pattern


@pytest.mark.parametrize(
    "command", ["python3 -c 'print(red)' > out", "printf $'red' > out", "ls *red* > out"]
)
def test_a_part_of_some_syntax_is_no_parameter(command: str) -> None:
    """The name of a variable, a pattern of files: nothing is replaced, and the reason is shown."""
    named = "*red*" if "*" in command else "red"
    found = captured(
        "Make it red", "done", ran(command), ran(f"echo '{named}' >> list"), text=named
    )
    assert recipe_of(found)["parameters"] == []
    assert command in recipe_of(found)["script"]["body"]
    assert found.captured.remarks


def test_results_of_earlier_commands_are_read_again(tmp_path: Path) -> None:
    """A whole result, a field of a line, a value of JSON, a list of found files."""
    (tmp_path / "list").write_text("a\nb\n")
    (tmp_path / "user.json").write_text('{"id": 7, "team": {"code": "blue-1"}}')
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a").write_text("old_word x\n")
    (tmp_path / "src/b").write_text("y old_word\n")
    found = captured(
        "Count list into count.txt and rename old_word to new_word in src",
        "The team is blue-1",
        ran("wc -l list", "2 list\n"),
        wrote("count.txt", "lines: 2\n"),
        ran("cat user.json", '{"id": 7, "team": {"code": "blue-1"}}'),
        ran("echo blue-1 > team.txt"),
        ran("grep -rl old_word src | sort", "src/a\nsrc/b\n"),
        ran("sed -i s/old_word/new_word/ src/a src/b"),
    )
    assert "blue-1" in play(found, tmp_path)
    (tmp_path / "list").write_text("a\nb\nc\n")
    (tmp_path / "user.json").write_text('{"id": 8, "team": {"code": "red-2"}}')
    (tmp_path / "src/c d").write_text("word_3\n")
    assert "red-2" in play(found, tmp_path, text="word_3", text2="word_4")
    assert (tmp_path / "count.txt").read_text() == "lines: 3\n"
    assert (tmp_path / "team.txt").read_text() == "red-2\n"
    assert (tmp_path / "src/c d").read_text() == "word_4\n"
    assert (tmp_path / "src/a").read_text() == "new_word x\n"


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([ran("cat a.csv", "x,4711\ny,17\n"), wrote("sum.txt", "4711\n")], "not certain"),
        ([ran("cat name", "Ada\n"), ran("python3 -c 'print(\"Ada\")' > out")], "code of another"),
        ([ran("rm -rf ~/")], "whole home"),
        ([ran("cd / && rm -rf /*")], "whole home"),
        ([ran("chmod -R 777 $HOME")], "whole home"),
        ([ran("ls")], "nothing used its result"),
        ([("think", {"about": "it"}, "hm")], "it is not a tool"),
    ],
)
def test_what_cannot_be_done_again_is_refused(calls: list[Calls], words: str) -> None:
    """The message says which call, and why."""
    with pytest.raises(RefusedError, match=words):
        captured("Do it", "done", *calls)


def test_the_policy_is_what_the_commands_use() -> None:
    """Programs, also inside pipelines; paths outside; directories of made files; hosts."""
    found = captured(
        "Do it",
        "done",
        ran("sort /etc/hosts ../b.txt | uniq -c > out/list.txt 2>/dev/null"),
        ran("find . -name '*.o' -exec rm {} \\;"),
        ran('curl -s https://api.test/a http://127.0.0.1:8080/b -H "X: $MY_VAR" > page.html'),
        wrote("deep/er/file.txt", "x"),
    )
    assert recipe_of(found)["sandbox"] == {
        "allowedCommands": ["sort", "uniq", "find", "rm", "curl", "mkdir"],
        "allowedPaths": [".", "/etc/hosts", "../b.txt"],
        "writePaths": ["."],
        "allowedDomains": ["api.test", "127.0.0.1:8080"],
        "privateNetwork": True,
        "environment": ["MY_VAR"],
        "maxExecutionTime": 300,
    }
    assert not found.writes_outside
    outside = captured("Do it", "done", ran("cp a.txt /srv/x/a.txt"), edited("c.txt", "a", "b"))
    assert recipe_of(outside)["sandbox"]["writePaths"] == ["/srv/x", "c.txt"]
    assert outside.writes_outside


@pytest.mark.parametrize("command", ["rm -rf out/x", "mv out/x b", "chmod 600 out/x"])
def test_what_removes_files_works_in_the_caller_s_directory_only(command: str) -> None:
    """A caller who names another path, such as a home, is refused by the policy."""
    found = captured("Do it with out/x", "done", ran(command))
    assert [one.type for one in found.captured.parameters] == ["path"]
    sandbox = recipe_of(found)["sandbox"]
    assert sandbox["writePaths"] == ["."]
    assert sandbox["allowedPaths"] == ["."]


def test_a_secret_is_bound_to_the_programs() -> None:
    """Its value is in no part of the recipe."""
    secret = "abcdef123456789"
    found = captured(
        f"Post it with {secret}",
        "done",
        ran(f"curl -X POST -H 'Authorization: Bearer {secret}' https://api.test/x"),
    )
    assert secret not in str(recipe_of(found))
    assert "Post it with secret:TOKEN" in recipe_of(found)["description"]
    assert recipe_of(found)["grammarPatterns"] == []
    assert found.captured.secrets == {"TOKEN": ("curl",)}
    assert found.sends == 1


def test_an_answer_of_a_host_is_read_again() -> None:
    """A number of the first answer is a part of the address of the second; keys are no values."""
    url = "http://127.0.0.1:8080"
    found = captured(
        f"Add up the orders of lagoon at {url}",
        "The sum is 1828",
        ran(f"curl -s {url}/places", '[{"owner": "x1", "id": 3}]'),
        ran(f"curl -s '{url}/customers?name=lagoon' | jq .number", "58872\n"),
        ran(f"curl -s '{url}/orders?customer=58872' | jq 'map(.owner) | add'", "1828\n"),
    )
    body = recipe_of(found)["script"]["body"]
    assert "58872" not in body
    assert """customer='"$result2" | jq""" in body
    assert "map(.owner)" in body


@pytest.mark.parametrize(
    ("command", "unsteady"),
    [("date > d", ("the clock (date)",)), ("echo $RANDOM > r", ("randomness ($RANDOM)",))],
)
def test_the_clock_and_randomness_are_noted(command: str, unsteady: tuple[str, ...]) -> None:
    """For the reason of a proof whose result differs."""
    assert captured("Do it", "done", ran(command)).unsteady == unsteady


def test_the_prompt_becomes_a_sentence_pattern() -> None:
    """With the parameters as captures, and the prompt as its example."""
    found = captured(
        "Please put 'hello there' into notes.txt!", "ok", ran("echo 'hello there' > notes.txt")
    )
    recipe = recipe_of(found)
    assert recipe["grammarPatterns"] == ["Please put $(text:wildcard) into $(target:wildcard)"]
    assert recipe["examples"] == [{"sentence": "Please put 'hello there' into notes.txt"}]


def test_state_of_a_shell_ends_with_its_command(tmp_path: Path) -> None:
    """A directory, a variable and an exit are those of one command; several commands in one go on
    after a failure, as in the agent's shell.
    """
    (tmp_path / "sub").mkdir()
    found = captured(
        "Do it",
        "done",
        ran("cd sub && pwd > where"),
        ran('X=1; false; echo "$X" > x'),
        ran('echo "${X-none}" > y; exit 0'),
        ran("echo 'a\\tb' > z"),
    )
    play(found, tmp_path)
    assert (tmp_path / "sub/where").read_text() == f"{tmp_path}/sub\n"
    assert (tmp_path / "x").read_text() == "1\n"
    assert (tmp_path / "y").read_text() == "none\n"
    assert (tmp_path / "z").read_text() == "a\tb\n"


@pytest.mark.parametrize(("text", "words"), [("a a", "more than once"), ("b", "is not in")])
def test_an_edit_fails_unless_the_passage_is_there_once(
    tmp_path: Path, text: str, words: str
) -> None:
    """And changes nothing then."""
    (tmp_path / "f").write_text(text)
    found = captured("Do it", "done", edited("f", "a", "c"))
    with pytest.raises(AssertionError, match=words):
        play(found, tmp_path)
    assert (tmp_path / "f").read_text() == text


def test_values_in_loops_expansions_and_names_of_code(tmp_path: Path) -> None:
    """The list of a loop, the end of a name, a name in a file of code; an archive's folder."""
    (tmp_path / "maple").mkdir()
    (tmp_path / "oak").mkdir()
    (tmp_path / "maple/a.txt").write_text("")
    (tmp_path / "oak/b.md").write_text("")
    (tmp_path / "m.py").write_text("def craft():\n    pass\n")
    found = captured(
        "Rename .txt in maple to .rst and the function craft to forge in m.py",
        "done",
        ran('for f in maple/*.txt; do mv "$f" "${f%.txt}.rst"; done'),
        edited("m.py", "def craft(", "def forge("),
    )
    play(found, tmp_path)
    assert [path.name for path in (tmp_path / "maple").iterdir()] == ["a.rst"]
    (tmp_path / "m.py").write_text("def one():\n    pass\n")
    names = {one.value: one.name for one in found.captured.parameters}
    values = {".txt": ".md", "maple": "oak", ".rst": ".html", "craft": "one", "forge": "two"}
    play(found, tmp_path, **{names[value]: other for value, other in values.items()})
    assert [path.name for path in (tmp_path / "oak").iterdir()] == ["b.html"]
    assert (tmp_path / "m.py").read_text().startswith("def two():")
    rules = {one["name"]: one.get("validation") for one in recipe_of(found)["parameters"]}
    assert rules[names["craft"]] == {"pattern": r"^[A-Za-z]\w*$"}
