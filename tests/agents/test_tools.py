"""Tools of a model: their effects stay in the worktree, and the model gets their errors."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.repositories import git, make_repository
from testbed.tool_loops import Clock
from uncaged_agents.tools.commands import Commands, hand_over, program_places
from uncaged_agents.tools.toolbox import Toolbox
from uncaged_agents.tools.working_directory import ToolError, WorkingDirectory
from uncaged_bundles.rights import ALL_TOOLS, Rights
from uncaged_engine.door.effects import Cancel
from uncaged_models.conversation import ToolResult, ToolUse

FILES = {
    "src/add.py": "def add(a, b):\n    return a - b\n",
    "README.md": "read me\n",
    "dos.txt": "one\r\ntwo\r\n",
    ".gitignore": "*.log\n",
}
Use = Callable[..., ToolResult]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A worktree as threads have it: its ``.git`` is a file that leads elsewhere."""
    repository = make_repository(tmp_path / "repository", FILES)
    git(repository, "worktree", "add", "--quiet", "-b", "work", str(tmp_path / "tree"))
    (tmp_path / "secret").write_text("outside\n")
    return tmp_path / "tree"


def box(
    tree: Path, rights: Rights = ALL_TOOLS, cancel: Cancel | None = None, **more: Any
) -> Toolbox:
    usual: dict[str, Any] = {
        "workdir": WorkingDirectory.around(tree),
        "environment": {"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        "reads": (),
        "writable": True,
        "network": False,
        "sandbox": "auto",
        "cancel": cancel or Cancel(),
    }
    return Toolbox(Commands(**(usual | more)), rights)


@pytest.fixture
def use(tree: Path) -> Iterator[Use]:
    """Call a tool by name with arguments."""
    tools = box(tree)

    def call(name: str, **arguments: Any) -> ToolResult:
        return tools.use(ToolUse(id="1", name=name, arguments=json.dumps(arguments)))

    yield call


def test_files_are_listed_read_edited_and_written(tree: Path, use: Use) -> None:
    """The ordinary day of a coding model."""
    assert use("list").text.splitlines() == [
        ".git",
        ".gitignore",
        "README.md",
        "dos.txt",
        "src/",
        "  add.py",
    ]
    assert use("read", path="src/add.py").text == FILES["src/add.py"]
    assert use("edit", path="src/add.py", old="a - b", new="a + b") == ToolResult(
        call="1", text="src/add.py: 1 passage replaced"
    )
    assert use("write", path="new/deep/x.txt", text="x\n").text == "new/deep/x.txt made, 1 lines"
    assert use("write", path="README.md", text="") == ToolResult(
        call="1", text="README.md replaced, 0 lines"
    )
    assert (tree / "src/add.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert (tree / "new/deep/x.txt").read_text() == "x\n"
    assert (tree / "README.md").read_text() == ""


def test_a_long_file_comes_in_parts_that_say_so(tree: Path, use: Use) -> None:
    """Lines from an offset, with a note of what is missing; a short file has no note."""
    (tree / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 5001)))
    assert use("read", path="long.txt").text.startswith("[lines 1 to 2000 of 5000]\nline 1\n")
    assert (
        use("read", path="long.txt", offset=4999, limit=9).text
        == "[lines 4999 to 5000 of 5000]\nline 4999\nline 5000\n"
    )
    assert use("read", path="long.txt", offset=9000).failed
    (tree / "wide.txt").write_text("x" * 500_000)
    assert len(use("read", path="wide.txt").text) < 70_000


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("edit", {"path": "src/add.py", "old": "nowhere", "new": "x"}, "not in 'src/add.py'"),
        ("edit", {"path": "src/add.py", "old": "a", "new": "x"}, "stands [0-9] times"),
        ("edit", {"path": "src/add.py", "old": "", "new": "x"}, "old is empty"),
        ("edit", {"path": "src/add.py", "old": "a - b", "new": "a - b"}, "are the same"),
        ("edit", {"path": "src/none.py", "old": "a", "new": "b"}, "there is no file 'src/none.py'"),
        ("edit", {"path": "src/add.py", "old": "a"}, "'new' is a required property"),
        ("read", {"path": "src"}, "is a directory; list it"),
        ("read", {"path": "blob"}, "is not a text file"),
        ("read", {"path": "latin"}, "is not UTF-8"),
        ("read", {"path": "huge"}, "more than"),
        ("read", {"path": "pipe"}, "is not a regular file"),
        ("write", {"path": "pipe", "text": "x"}, "cannot be written|not a regular file"),
        ("read", {"path": "x\0y"}, "null character"),
        ("list", {"path": "README.md"}, "there is no directory"),
        ("list", {"depth": 99}, "maximum"),
        (
            "fly",
            {},
            "there is no tool 'fly'; there are: list, read, search, edit, write, run, commit",
        ),
        ("commit", {"message": " "}, "message is empty"),
        ("commit", {"message": "m"}, "nothing to commit"),
    ],
)
def test_an_impossible_call_has_an_error_as_its_result(
    tree: Path, use: Use, name: str, arguments: dict[str, Any], words: str
) -> None:
    """A call neither hangs nor raises, and the error has the next step."""
    (tree / "blob").write_bytes(b"\x7fELF\0\0")
    (tree / "latin").write_bytes(b"caf\xe9\n")
    with (tree / "huge").open("wb") as file:
        file.truncate(64 << 20)
    os.mkfifo(tree / "pipe")
    if name == "commit":
        git(tree, "clean", "-qfd")
    result = use(name, **arguments)
    assert result.failed, result
    assert re.search(words, result.text), result.text


@pytest.mark.parametrize("tool", ["read", "write", "edit", "list", "search"])
@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "/etc/hostname",
        "src/../../secret",
        "out",
        "dir/secret",
        "chain/secret",
        ".git",
        ".git/config",
        "src/../.GIT",
        "~/x/../../../secret",
    ],
)
def test_no_path_leads_out(tree: Path, use: Use, tool: str, path: str) -> None:
    """A path with dots, from the root, through a link or to git's own file is refused; files
    outside are neither read nor changed.
    """
    (tree / "out").symlink_to("../secret")
    (tree / "dir").symlink_to("..")
    (tree / "chain").symlink_to("dir")
    before = (tree / ".git").read_bytes()
    more = {
        "read": {},
        "list": {},
        "write": {"text": "x"},
        "edit": {"old": "outside", "new": "x"},
        "search": {"pattern": "."},
    }[tool]
    result = use(tool, path=path, **more)
    assert result.failed, result
    assert "leads out" in result.text or "belongs to git" in result.text
    assert (tree.parent / "secret").read_text() == "outside\n"
    assert (tree / ".git").read_bytes() == before


def test_a_link_inside_is_followed(tree: Path, use: Use) -> None:
    """A link to a file of the worktree is followed, and stays a link."""
    (tree / "alias.py").symlink_to("src/add.py")
    assert not use("edit", path="alias.py", old="a - b", new="a + b").failed
    assert (tree / "alias.py").is_symlink()
    assert "a + b" in (tree / "src/add.py").read_text()


def test_a_subdirectory_sees_the_whole_worktree(tree: Path) -> None:
    """A person who started in a subdirectory works there; the rest of the repository is within
    reach, what is beyond is not.
    """
    workdir = WorkingDirectory.around(tree / "src")
    assert workdir.read("../README.md") == "read me\n"
    with pytest.raises(ToolError):
        workdir.read("../../secret")


def test_line_ends_stay_what_they_are(tree: Path, use: Use) -> None:
    """A model writes line feeds alone; a file of another kind keeps its own, and can still be
    edited.
    """
    assert not use("edit", path="dos.txt", old="one\ntwo", new="1\n2").failed
    assert (tree / "dos.txt").read_bytes() == b"1\r\n2\r\n"


def test_arguments_that_are_no_object_are_answered(tree: Path) -> None:
    """The answer to wrong arguments has the problem, so that the model can correct them."""
    tools = box(tree)
    for arguments, words in (
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        ('{"path": 7}', "7 is not of type"),
        ('{"x": 1}', "unexpected"),
    ):
        result = tools.use(ToolUse(id="1", name="read", arguments=arguments))
        assert result.failed
        assert words in result.text


def test_a_role_has_only_the_tools_that_it_may_use(tree: Path) -> None:
    """The tools are those of the policy; those that change files are missing where files may not be
    changed.
    """
    assert [tool.name for tool in box(tree).described] == [
        "list",
        "read",
        "search",
        "edit",
        "write",
        "run",
        "commit",
    ]
    assert [
        tool.name
        for tool in box(tree, Rights(tools=frozenset({"edit", "read"}), network=True)).described
    ] == ["read", "edit"]
    looking = box(tree, writable=False)
    assert [tool.name for tool in looking.described] == ["list", "read", "search", "run"]
    assert looking.use(ToolUse(id="1", name="write", arguments='{"path": "x", "text": "x"}')).failed
    assert not (tree / "x").exists()


@pytest.mark.slow
def test_a_command_runs_in_the_worktree_and_nowhere_else(tree: Path, use: Use) -> None:
    """A command changes files in the worktree and reads its git, and reaches neither the person's
    home, nor files beside the worktree, nor a network.
    """
    done = use(
        "run",
        command="pwd; echo new > made.txt; git status --short; git log --format=%s; echo oops >&2; exit 3",
    )
    assert done.text.startswith("[exit code 3]\n")
    assert f"{tree}\n" in done.text
    assert "?? made.txt" in done.text
    assert "\none\n" in done.text
    assert done.text.endswith("[standard error]\noops\n")
    assert (tree / "made.txt").read_text() == "new\n"
    assert (tree / "made.txt").stat().st_uid == os.getuid()
    assert (tree / "src/add.py").stat().st_uid == os.getuid()
    for command in (
        f"cat {tree.parent}/secret",
        f"ls {Path.home()}",
        "echo x > .git/x",
        "touch /x",
    ):
        assert "[exit code 0]" not in use("run", command=command).text, command
    # files that a command makes there are in its own sandbox
    use("run", command=f"echo x > {tree.parent}/repository/x; echo x > {tree.parent}/secret")
    assert (tree.parent / "secret").read_text() == "outside\n"
    assert sorted(path.name for path in (tree.parent / "repository").iterdir()) == sorted(
        [".git", ".gitignore", "README.md", "dos.txt", "src"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("network", [True, False])
def test_commands_have_a_network_only_if_the_role_may(tree: Path, network: bool) -> None:
    """A server on this machine's loopback is reached with it, and not without."""
    from testbed.modelserver import serving

    with serving([]) as server:
        program = f"import urllib.request; print(urllib.request.urlopen('{server.url}/v1/models', timeout=3).status)"
        done = box(tree, network=network).use(
            ToolUse(
                id="1", name="run", arguments=json.dumps({"command": f'python3 -c "{program}"'})
            )
        )
    assert ("\n200\n" in done.text) is network, done.text


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_git_finds_a_repository_below_a_closed_directory(tree: Path, sandbox: str) -> None:
    """As root a command's user passes through directories that are closed to it, and what git asks
    of access(2) agrees.
    """
    tree.parent.chmod(0o700)
    done = box(tree, sandbox=sandbox).use(
        ToolUse(id="1", name="run", arguments=json.dumps({"command": "git log --format=%s"}))
    )
    assert "one" in done.text.splitlines(), done.text


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_a_command_cannot_lead_git_elsewhere(tree: Path, sandbox: str) -> None:
    """The file that names the repository is the same again after any change by a command."""
    before = (tree / ".git").read_bytes()
    tools = box(tree, sandbox=sandbox)
    lead = "echo 'gitdir: /tmp/evil' > .git"
    for command in (
        "rm -f .git; mkdir .git",
        lead,
        f"rm -f .git; {lead}",
        "rm -f .git; ln -s /tmp/evil .git",
        "rm -f .git",
    ):
        tools.use(ToolUse(id="1", name="run", arguments=json.dumps({"command": command})))
        assert (tree / ".git").read_bytes() == before, command
        assert not (tree / ".git").is_symlink()


@pytest.mark.slow
def test_a_role_that_only_looks_runs_commands_that_only_look(tree: Path) -> None:
    """The worktree is there to read, not to write."""
    tools = box(tree, writable=False)
    done = tools.use(
        ToolUse(
            id="1", name="run", arguments=json.dumps({"command": "cat README.md && echo x > y"})
        )
    )
    assert "read me" in done.text
    assert "exit code 0" not in done.text
    assert not (tree / "y").exists()


@pytest.mark.slow
def test_a_search_finds_lines_and_cannot_hang(tree: Path, use: Use) -> None:
    """Path, line and text; caches and binary files are left out; a wrong pattern is an error, one
    without a match is no failure.
    """
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__/x.txt").write_text("return\n")
    (tree / "blob").write_bytes(b"return\0")
    assert use("search", pattern=r"ret.rn|read me").text.splitlines() == [
        "README.md:1:read me",
        "src/add.py:2:    return a - b",
    ]
    assert (
        use("search", pattern="RETURN", ignoreCase=True, path="src").text
        == "src/add.py:2:    return a - b"
    )
    assert use("search", pattern="read", files="*.py").text == "nothing matches"
    assert use("search", pattern="(").failed
    assert use("search", pattern="-e").text == "nothing matches"
    (tree / "many").write_text("x\n" * 5000)
    assert use("search", pattern="x").text.endswith(
        "[… 4700 more lines; search for something narrower]"
    )


@pytest.mark.slow
def test_a_command_has_its_time_and_leaves_nothing_running(use: Use) -> None:
    """Background processes of a command end with it, and a command over its time limit is ended."""
    pause = f"sleep {new_pause_s()}"
    with Clock() as clock:
        done = use("run", command=f"{pause} & {pause} & echo started; exit 0")
    assert "started" in done.text
    assert clock.seconds < 60
    with Clock() as clock:
        assert use("run", command=pause, timeoutSeconds=1).text.startswith(
            "[it took longer than 1 s and was ended]"
        )
    assert clock.seconds < 60
    assert not is_running(pause)


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_a_kill_ends_a_command(tree: Path, sandbox: str) -> None:
    """A kill from another thread ends all processes of a command at once."""
    cancel = Cancel()
    tools = box(tree, cancel=cancel, sandbox=sandbox)
    pause = f"sleep {new_pause_s()}"
    threading.Timer(1.0, cancel.request).start()
    with Clock() as clock:
        tools.use(
            ToolUse(
                id="1",
                name="run",
                arguments=json.dumps({"command": f"{pause} & {pause}; echo no"}),
            )
        )
    assert clock.seconds < 60
    assert not is_running(pause)


def new_pause_s() -> int:
    """Return a time that no other test on this machine sleeps, some hundred days."""
    return 10_000_000 + secrets.randbelow(1_000_000_000)


def is_running(command: str) -> bool:
    listed = subprocess.run(["ps", "axo", "args"], capture_output=True, text=True, check=True)
    return command in listed.stdout


@pytest.mark.slow
def test_a_commit_is_one_on_the_worktrees_branch_without_hooks(tree: Path, use: Use) -> None:
    """A commit has the named paths or all of them; the answer has the id; a hook that an earlier
    turn wrote is not run.
    """
    hooks = tree.parent / "repository/.git/hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "pre-commit").write_text(f"#!/bin/sh\ntouch {tree.parent}/ran\n")
    (hooks / "pre-commit").chmod(0o755)
    use("edit", path="src/add.py", old="a - b", new="a + b")
    use("write", path="notes.md", text="n\n")
    done = use("commit", message="Add what add() gets\n\nIt subtracted.", paths=["src/add.py"])
    sha = git(tree, "rev-parse", "HEAD").strip()
    assert done.text.startswith(f"committed {sha} on branch work")
    assert "M\tsrc/add.py" in done.text
    assert "?? notes.md" in done.text
    assert git(tree, "log", "-1", "--format=%B").strip() == "Add what add() gets\n\nIt subtracted."
    assert use("commit", message="Notes").text.endswith("nothing else is changed")
    assert use("commit", message="x", paths=["../secret"]).failed
    assert not (tree.parent / "ran").exists()
    assert git(tree.parent / "repository", "status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_tree_that_a_crash_left_lent_is_taken_back(tree: Path, use: Use) -> None:
    """As root a command has a user of its own; after the next command everything is root's again,
    and a second name keeps its owner.
    """
    other = tree.parent / "linked"
    other.write_text("x")
    os.link(other, tree / "hard")
    hand_over(tree, 64001, 64001)
    assert other.stat().st_uid == 0
    assert (tree / ".git").stat().st_uid == 0
    assert "64001" in use("run", command="id -u").text
    assert {path.stat().st_uid for path in tree.rglob("*")} == {0}


def test_a_home_is_never_shown_as_a_whole(tmp_path: Path) -> None:
    """A directory of programs in a home is bound alone with its library; the system's need no
    binding.
    """
    (tmp_path / "home/bin").mkdir(parents=True)
    (tmp_path / "home/.local/bin").mkdir(parents=True)
    (tmp_path / "home/.local/lib").mkdir()
    path = f"/usr/bin:{tmp_path}/home/bin:{tmp_path}/home/.local/bin:relative:{tmp_path}/gone"
    assert program_places(path) == (
        tmp_path / "home/bin",
        tmp_path / "home/.local/bin",
        tmp_path / "home/.local/lib",
    )
