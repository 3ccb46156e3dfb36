"""Sentences on a fresh store: each runs the right shipped flow, through the whole command."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from testbed.forked_commands import ForkedCommands
from testbed.processes import end_workers

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
READING = [
    ("list the pdf files in downloads", "list-files", "report.pdf"),
    ("what files are here?", "list-files", "notes.txt"),
    ("list the files in downloads", "list-files", "report.pdf"),
    ("find a file called report in downloads", "find-files", "report.pdf"),
    ("where is notes.txt", "find-files", "notes.txt"),
    ("what are the biggest files in downloads", "find-large-files", "no file is that large"),
    ("what did I change today", "recent-files", "notes.txt"),
    ("how many files are in downloads?", "count-files", "1 files"),
    ("how many lines does notes.txt have?", "count-lines", "2 lines, 4 words"),
    ('which files contain "buy milk"?', "search-text", "notes.txt:1:buy milk"),
    ("could you show me notes.txt", "show-file", "call Ada"),
    ("how big is notes.txt", "file-info", "size: 18 bytes"),
    ("are notes.txt and copy.txt the same?", "compare-files", "the files are the same"),
    ("are there any duplicate files?", "find-duplicates", "1 groups of equal files"),
    ("what is the checksum of notes.txt", "file-checksum", "notes.txt"),
    ("show the last 1 lines of notes.txt", "tail-log", "call Ada"),
    ("search the log notes.txt for MILK", "search-log", "1:buy milk"),
    ("git status", "git-status", "branch: trunk"),
    ("show me the last 5 commits", "git-log", "Ada: first words"),
    ("what was committed in the past 2 weeks", "recent-commits", "Ada: first words"),
    ("git diff", "git-diff", "no tracked file has changed"),
    ("which branches are there?", "git-branches", "* trunk"),
    ("show the commits by ada", "commits-by-author", "first words"),
    ("find commits that mention first", "search-commits", "first words"),
    ("who has the most commits?", "git-contributors", "Ada"),
    ("who changed notes.txt last?", "file-history", "first words"),
    ("git summary", "git-summary", "commits: 1"),
    ("what is taking up space in downloads?", "disk-usage", "downloads"),
    ("how much disk space is left?", "disk-space", "GB are free"),
    ("how much memory is free?", "memory-usage", "memory are available"),
    ("what is eating my RAM", "processes-by-memory", "COMMAND"),
    ("show the 3 busiest processes", "processes-by-cpu", "COMMAND"),
    ("is a-program-without-processes running?", "find-process", "no process has that name"),
    ("which ports are open?", "port-listeners", "ADDRESS"),
    ("how long has this machine been running?", "uptime", "running for"),
    ("tell me about this computer", "system-info", "kernel: Linux"),
    ("what time is it?", "current-time", ":"),
]
CHANGING = [
    ("make a folder called plans", "make-folder", "exists now"),
    ("copy notes.txt to plans", "copy-file", "plans/notes.txt"),
    ("rename copy.txt to twin.txt", "rename-file", "renamed"),
    ("move twin.txt to plans", "move-file", "plans/twin.txt"),
    ("zip the plans folder", "compress-files", "packed 2 files"),
    ("unzip example.zip", "extract-archive", "unpacked 1 files"),
    ("delete old.txt", "delete-file", "deleted"),
]
NOTES = [
    ("make a note that the key is under the mat", "add-note", "note 1: the key is under the mat"),
    ("show my notes", "list-notes", "the key is under the mat"),
    ("what do my notes say about the key?", "search-notes", "under the mat"),
    ("read me my first note", "show-note", "under the mat"),
]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A person's home with a fresh store, which every user can walk to."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        assert end_workers(Path(name) / "store") == []


@pytest.fixture
def place(home: Path, request: pytest.FixtureRequest) -> Path:
    """The directory in which the commands run: a repository, with what the sentences name."""
    place = home / f"place-{abs(hash(request.node.name))}"
    (place / "downloads").mkdir(parents=True)
    (place / "downloads" / "report.pdf").write_bytes(b"%PDF-1.4\n")
    for name in ("notes.txt", "copy.txt", "old.txt"):
        (place / name).write_text("buy milk\ncall Ada\n")
    with zipfile.ZipFile(place / "example.zip", "w") as archive:
        archive.writestr("inside.txt", "packed\n")
    git = ["git", "-C", str(place), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for words in (["init", "-qb", "trunk"], ["add", "notes.txt"], ["commit", "-qm", "first words"]):
        subprocess.run([*git, *words], check=True, env={"PATH": "/usr/bin:/bin", "HOME": str(home)})
    return place


@pytest.fixture
def command(home: Path, place: Path, forked: ForkedCommands) -> Command:
    """Run the command in *place*."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    environment = {
        **kept,
        "HOME": str(home),
        "UNCAGED_WORKFLOW_HOME": str(home / "store"),
        "TERM": "xterm",
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return forked.run(words, env=environment, cwd=place, timeout_s=120)

    return run


def run(command: Command, sentence: str, *options: str) -> tuple[str, dict[str, object]]:
    """Return the flow that a sentence ran, and the result."""
    done = command("do", sentence, "--json", *options)
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    reading = next((one["reading"] for one in documents if one.get("event") == "understood"), None)
    assert reading is not None, (sentence, done.stdout, done.stderr)
    assert "result" in documents[-1], (sentence, done.stdout, done.stderr)
    return reading["calls"][0]["flow"], documents[-1]["result"]


@pytest.mark.parametrize(("sentence", "flow", "text"), READING)
def test_a_sentence_runs_the_right_flow(
    command: Command, sentence: str, flow: str, text: str
) -> None:
    """A flow that only reads runs at once, and its result has what was asked for."""
    found, result = run(command, sentence)
    assert (found, result["success"]) == (flow, True), result
    assert text in str(result["message"])


def test_sentences_that_change_files_run_after_a_yes(command: Command, place: Path) -> None:
    """Without a yes nothing changes; with it each flow does what the sentence says."""
    refused = command("do", "delete old.txt")
    assert refused.returncode != 0
    assert (place / "old.txt").exists()
    for sentence, flow, text in CHANGING:
        found, result = run(command, sentence, "--yes")
        assert (found, result["success"]) == (flow, True), result
        assert text in str(result["message"])
    names = {str(path.relative_to(place)) for path in place.rglob("*.txt")}
    assert {"plans/notes.txt", "plans/twin.txt", "example/inside.txt"} <= names
    assert not {"old.txt", "copy.txt", "twin.txt"} & names


def test_notes_are_kept_in_a_file_of_the_person(command: Command, home: Path) -> None:
    """Notes are added, listed, found and removed by sentences."""
    for sentence, flow, text in NOTES:
        found, result = run(command, sentence)
        assert (found, result["success"]) == (flow, True), result
        assert text in str(result["message"])
    assert (home / ".uncaged-notes" / "notes.txt").read_text().endswith("under the mat\n")
    assert run(command, "delete the first note", "--yes")[0] == "remove-note"
    assert "there are no notes" in str(run(command, "list all notes")[1]["message"])


def test_the_product_says_what_it_can_do(command: Command) -> None:
    """An example for each of at least forty sentences, under the name of its pack; each is read as
    the flow that it is an example of.
    """
    done = command("do", "what can you do?")
    assert done.returncode == 0, done.stderr
    packs = [line.partition(":")[0] for line in done.stdout.splitlines() if line[:1].isalpha()]
    assert packs == ["browser", "files", "git", "notes", "product", "system", "web"]
    sentences = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert len(set(sentences)) >= 40


def test_sentences_steer_conversations(command: Command) -> None:
    """A conversation is made, renamed, left and found again by sentences alone."""
    for sentence in (
        "new conversation called budget",
        "rename this conversation to taxes",
        "switch to the conversation default",
    ):
        done = command("do", sentence)
        assert done.returncode == 0, done.stderr
    listed = json.loads(command("conversation", "list", "--json").stdout)
    names = {one["name"]: one["current"] for one in listed}
    assert names == {"taxes": False, "default": True}
