"""The verbs about flows, through the real command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
AddFlow = Callable[..., str]

DEFINITION = """
from uncaged_bundles.authoring import END, START, Role, Workflow

judge = Role(
    name="judge",
    description="Says yes or no.",
    system_prompt="Judge.",
    extract_prompt="Extract.",
    schema={"type": "object", "properties": {"status": {"enum": ["yes", "no"]}}, "required": ["status"]},
)
table = {START: "judge", "judge": {"yes": END, "no": "judge"}}
workflow = Workflow(name="judged", description="Judge once.", roles=[judge], moderator=table)
"""


def test_an_empty_registry_is_no_error(command: Command) -> None:
    """Nothing is listed, and the next step is named."""
    done = command("list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "next: uncaged-workflow init" in done.stderr


def test_adding_needs_one_yes(command: Command, tmp_path: Path, flow: AddFlow) -> None:
    """Without a terminal and without --accept nothing is registered; with it, the hash is printed;
    the same bytes change nothing.
    """
    flow("echo")
    path = tmp_path / "other.py"
    path.write_text((tmp_path / "echo.py").read_text() + "\n")
    refused = command("add", "other", str(path))
    assert refused.returncode == 1
    assert "null: may yield the null effect" in refused.stderr
    assert "--accept" in refused.stderr
    assert "other" not in command("list").stdout
    again = command("add", "echo", str(tmp_path / "echo.py"))
    assert (again.returncode, "nothing was changed" in again.stdout) == (0, True)


def test_a_definition_is_built_on_the_way(command: Command, tmp_path: Path) -> None:
    """`add` and `build` make the same bundle of a definition, and `show` tells what it is."""
    path = tmp_path / "judged.py"
    path.write_text(DEFINITION)
    built = json.loads(command("build", str(path), "--json").stdout)
    added = json.loads(command("add", "judged", str(path), "--accept", "--json").stdout)
    assert (added["hash"], added["built"], added["changed"]) == (built["hash"], True, True)
    shown = command("show", "judged").stdout
    assert "Judge once." in shown
    assert "role: may ask agents to answer for roles" in shown
    assert "judge: Says yes or no." in shown
    assert "├─ yes → end" in shown
    graph = command("graph", "judged", "--format", "mermaid").stdout
    assert '-->|"no"|' in graph


def test_what_a_role_may_do_is_said_before_anything_runs(command: Command, tmp_path: Path) -> None:
    """A wrong word is refused by `add`, `show` says what is allowed, and the first line of a run
    who is only told.
    """
    path = tmp_path / "judged.py"
    path.write_text(
        DEFINITION.replace(
            "moderator=table", 'moderator=table, policy={"role": {"tools": ["read", "serach"]}}'
        )
    )
    refused = command("add", "judged", str(path), "--accept")
    assert (
        refused.returncode,
        "'serach' is no tool; did you mean 'search'?" in refused.stderr,
    ) == (1, True)
    path.write_text(path.read_text().replace("serach", "search"))
    assert command("add", "judged", str(path), "--accept").returncode == 0
    shown = command("show", "judged").stdout
    assert "role: may ask agents to answer for roles; tools: read, search" in shown
    assert "are restricted by the permissions that they request" in " ".join(shown.split())
    (tmp_path / "answer").write_text('```json\n{"status": "yes"}\n```\n')
    ran = command("run", "judged", "--prompt", "x", "--agent", f"command:cat {tmp_path / 'answer'}")
    assert ran.returncode == 0
    assert (
        "agent command cat (asked for; told of the policy's tools, not held to it)"
        in ran.stdout + ran.stderr
    )


def test_a_built_bundle_is_written_whole(command: Command, tmp_path: Path) -> None:
    """--output writes the bytes that standard output would get."""
    path, target = tmp_path / "judged.py", tmp_path / "bundle.py"
    path.write_text(DEFINITION)
    piped = command("build", str(path))
    named = command("build", str(path), "-o", str(target))
    assert target.read_text() == piped.stdout
    assert named.stdout.startswith(f"{target}: judged@")


def test_versions_come_and_go(command: Command, flow: AddFlow, tmp_path: Path) -> None:
    """history, diff, rollback (newest by default, or by the beginning of a hash), disable, enable,
    remove.
    """
    first = flow("echo")
    second = flow(
        "echo",
        (tmp_path / "echo.py")
        .read_text()
        .replace('"policy": {"null": {}, "ask": {}}', '"policy": {}')
        .replace("A flow", "The flow"),
    )
    assert [line.split()[0] for line in command("history", "echo").stdout.splitlines()[1:]] == [
        second,
        first,
    ]
    difference = command("diff", "echo").stdout
    assert (
        difference.index("- null: may yield the null effect")
        < difference.index("+The flow for tests.")
        < difference.index("source")
    )
    assert json.loads(command("diff", first, "echo", "--json").stdout)["new"] == second
    assert f"echo is now {first} (was {second})" in command("rollback", "echo").stdout
    assert f"echo is now {second}" in command("rollback", "echo", second[:6].lower()).stdout
    assert command("disable", "echo").returncode == 0
    assert command("run", "echo").returncode == 1
    assert "disabled" in command("list").stdout
    assert command("show", "echo").returncode == 0
    assert command("enable", "echo").returncode == 0
    assert command("remove", "echo").returncode == 0
    assert command("show", "echo").returncode == 5
    assert command("show", first).returncode == 0


def test_what_is_not_there_is_exit_code_5_with_the_closest(command: Command, flow: AddFlow) -> None:
    """An unknown flow, version or file names the nearest or where to look."""
    flow("echo")
    missing = command("show", "ecko")
    assert missing.returncode == 5
    assert "echo" in missing.stderr
    assert command("rollback", "echo", "ZZZZ").returncode == 5
    assert command("diff", "echo~3", "echo").returncode == 5
    assert command("add", "x", "nowhere.py").returncode == 5


def test_a_malformed_entry_hides_no_other(command: Command, flow: AddFlow, tmp_path: Path) -> None:
    """The damaged entry is named on stderr, the others are listed, exit 0."""
    flow("echo")
    registry = tmp_path / "store" / "workflow.yaml"
    registry.write_text(
        registry.read_text().replace("workflows:\n", "workflows:\n  broken:\n    hash: 7\n")
    )
    done = command("list")
    assert done.returncode == 0
    assert "echo" in done.stdout
    assert "broken" in done.stderr


def test_json_is_one_document(command: Command, flow: AddFlow) -> None:
    """Every reading verb prints one JSON document on stdout and nothing else."""
    flow("echo")
    for words in (
        ["list"],
        ["show", "echo"],
        ["history", "echo"],
        ["graph", "echo"],
        ["threads"],
        ["ps"],
        ["doctor"],
        ["completion", "bash"],
    ):
        done = command(*words, "--json")
        assert done.returncode == 0, words
        json.loads(done.stdout)


def test_what_is_wrong_in_a_bundle_is_told_with_its_file(command: Command, tmp_path: Path) -> None:
    """A line and a column mean something in a file alone."""
    (tmp_path / "wrong.py").write_text("descriptor = {\n")
    for words in (
        ("add", "wrong", "wrong.py"),
        ("build", "wrong.py"),
        ("add", "wrong", "wrong.py", "--check"),
    ):
        done = command(*words)
        assert (done.returncode, done.stderr.startswith("error: wrong.py: line 1, column ")) == (
            1,
            True,
        ), done.stderr


def test_versions_are_completed(command: Command, flow: AddFlow, tmp_path: Path) -> None:
    """Where a version is wanted, the shell offers `head` and the flows, or the former versions of
    the flow before it.
    """
    former = flow("echo")
    flow("echo", (tmp_path / "echo.py").read_text().replace("said", "sung"))

    def completed(line: str) -> list[str]:
        asked = {
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
            "_UNCAGED_WORKFLOW_COMPLETE": "bash_complete",
        }
        return [word.partition(",")[2] for word in command(**asked).stdout.split()]

    assert completed("uncaged-workflow rollback echo ") == [former]
    assert completed("uncaged-workflow rollback other ") == []
    assert completed("uncaged-workflow fork 01 --on ") == ["head", "echo"]
    assert completed("uncaged-workflow threads --status f") == ["failed"]
