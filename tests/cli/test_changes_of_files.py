"""Changes that a thread makes to files, step by step, and the merge of its branch."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.bundles import source
from testbed.still_pages import data_of

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]

DEFINITION = """
from uncaged_bundles.authoring import END, START, Role, Workflow

schema = {"type": "object", "properties": {"status": {"enum": ["done"]}}, "required": ["status"]}
writer = Role(name="writer", description="Writes.", system_prompt="Write.", extract_prompt="Say done.", schema=schema)
closer = Role(name="closer", description="Commits.", system_prompt="Commit.", extract_prompt="Say done.", schema=schema)
workflow = Workflow(
    name="write",
    description="Write and commit.",
    roles=(writer, closer),
    moderator={START: "writer", "writer": "closer", "closer": END},
    policy={"role": {"workspace": "write"}},
)
"""
AGENT = """#!/bin/sh
case "$(cat)" in
*Commit.*) git add -A && git -c user.name=A -c user.email=a@example.org commit -q -m "more words" ;;
*) printf 'one\\nTWO\\n' > words.txt && printf 'new' > 'a file.txt' ;;
esac
printf '```json\\n{"status": "done"}\\n```\\n'
"""


def git(place: Path, *words: str) -> str:
    arguments = [
        "git",
        "-C",
        str(place),
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        *words,
    ]
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, command: Command) -> Path:
    """A repository in which a thread has written two files and committed them on its branch."""
    place = tmp_path / "repository"
    place.mkdir()
    (place / "words.txt").write_text("one\ntwo\n")
    git(place, "init", "-q", "-b", "trunk")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "words")
    git(place, "config", "user.name", "Ada")
    git(place, "config", "user.email", "ada@example.org")
    (tmp_path / "write.py").write_text(DEFINITION)
    agent = tmp_path / "agent.sh"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    assert command("add", "write", str(tmp_path / "write.py"), "--accept").returncode == 0
    done = command("run", "write", "--workspace", str(place), "--agent", f"command:{agent}")
    assert done.returncode == 0, done.stderr + done.stdout
    return place


def test_a_step_shows_what_it_did_to_the_files(
    command: Command, repository: Path, tmp_path: Path
) -> None:
    """The files with their numbers of lines, then the patch, and the same on the thread's page; a
    step that changed none says so; one without a snapshot is refused.
    """
    assert repository.exists()
    shown = command("thread", "diff", "latest", "1").stdout.splitlines()
    assert {"a file.txt  +1 -0", "words.txt  +1 -1"} <= set(shown)
    assert {"-two", "+TWO"} <= set(shown)
    found = json.loads(command("thread", "diff", "latest", "1", "--json").stdout)
    assert [file["path"] for file in found["files"]] == ["a file.txt", "words.txt"]
    assert command("thread", "diff", "latest", "2").stdout.startswith("no file differs")
    page = tmp_path / "page.html"
    assert command("thread", "latest", "--html", str(page)).returncode == 0
    steps = data_of(page.read_text())["steps"]
    assert steps["1"]["changes"] == {"problem": None, **found}
    assert steps["2"]["changes"]["files"] == []
    whole = json.loads(command("thread", "diff", "latest", "--json").stdout)
    assert (whole["step"], whole["files"]) == (None, found["files"])
    refused = command("thread", "diff", "latest", "9")
    assert (refused.returncode, "step 9" in refused.stderr, "1, 2" in refused.stderr) == (
        5,
        True,
        True,
    )


def test_a_branch_is_merged_after_it_was_shown(command: Command, repository: Path) -> None:
    """Without a yes nothing changes; with one the checkout has the files; a second merge finds
    nothing to do.
    """
    refused = command("thread", "merge", "latest")
    assert (refused.returncode, "+TWO" in refused.stdout, "--yes" in refused.stderr) == (
        1,
        True,
        True,
    )
    assert (repository / "words.txt").read_text() == "one\ntwo\n"
    done = command("thread", "merge", "latest", "--yes")
    assert (done.returncode, "into trunk" in done.stdout) == (0, True), done.stderr
    assert (repository / "words.txt").read_text() == "one\nTWO\n"
    assert "nothing was changed" in command("thread", "merge", "latest", "--yes").stdout


def test_a_merged_branch_is_not_offered_again(
    command: Command, repository: Path, tmp_path: Path
) -> None:
    """A thread whose result names its branch offers the merge until the checkout holds it."""
    body = """
    step = yield {"role": {"name": "writer"}}
    step = yield {"role": {"name": "closer"}}
    return {"success": True, "message": "done", "data": {"branch": step["content"].split()[0]}}
"""
    names = {
        name: {
            "description": "Works.",
            "systemPrompt": prompt,
            "extractPrompt": "Say done.",
            "schema": {"type": "object"},
        }
        for name, prompt in (("writer", "Write."), ("closer", "Commit."))
    }
    policy = {"role": {"workspace": "write"}}
    (tmp_path / "named.py").write_bytes(
        source("named", body, kind="workflow", roles=names, policy=policy)
    )
    agent = tmp_path / "named.sh"
    agent.write_text(
        "#!/bin/sh\ngit branch --show-current\n" + AGENT.replace("TWO", "THREE").partition("\n")[2]
    )
    agent.chmod(0o755)
    assert command("add", "named", str(tmp_path / "named.py"), "--accept").returncode == 0
    done = command("run", "named", "--workspace", str(repository), "--agent", f"command:{agent}")
    offer = f"git -C {repository} merge uncaged/named/"
    assert (done.returncode, offer in done.stderr) == (0, True), done.stderr + done.stdout
    assert offer in command("thread", "show", "latest").stderr, "the control"
    assert command("thread", "merge", "latest", "--yes").returncode == 0
    shown = command("thread", "show", "latest")
    assert (
        shown.returncode,
        "merge uncaged" in shown.stderr,
        "uncaged/named/" in shown.stdout,
    ) == (0, False, True), shown.stderr


def test_a_thread_without_a_commit_has_nothing_to_merge(command: Command, repository: Path) -> None:
    """A thread that changed files and committed none is not called merged: the message names
    `thread diff`.
    """
    agent = repository.parent / "agent.sh"
    agent.write_text(AGENT.replace("git add", ": git add"))
    assert (
        command(
            "run", "write", "--workspace", str(repository), "--agent", f"command:{agent}"
        ).returncode
        == 0
    )
    done = command("thread", "merge", "latest", "--yes")
    assert (
        done.returncode,
        "made no commit" in done.stderr,
        "thread diff 01" in done.stderr,
    ) == (0, True, True), done.stderr


def test_a_merge_in_conflict_is_taken_back(command: Command, repository: Path) -> None:
    """The message names the files; the checkout, its branch and its index are as they were."""
    (repository / "words.txt").write_text("one\nzwei\n")
    git(repository, "commit", "-qam", "another word")
    before = git(repository, "rev-parse", "HEAD")
    refused = command("thread", "merge", "latest", "--yes", "--json")
    assert (refused.returncode, "in conflict: words.txt" in refused.stderr) == (1, True), (
        refused.stderr
    )
    assert (git(repository, "rev-parse", "HEAD"), git(repository, "status", "--porcelain")) == (
        before,
        "",
    )
    (repository / "words.txt").write_text("unsaved\n")
    assert command("thread", "merge", "latest", "--yes").returncode == 1
    assert (repository / "words.txt").read_text() == "unsaved\n"


def test_a_thread_without_files_has_no_changes(
    command: Command, flow: Callable[..., object]
) -> None:
    """A thread of roles that may not work on files is refused with the reason."""
    flow("echo")
    command("run", "echo")
    refused = command("thread", "diff", "latest")
    assert (refused.returncode, "has no workspace" in refused.stderr) == (5, True)
