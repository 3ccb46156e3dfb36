"""The verbs that start something and those that maintain the store, through the real command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from uncaged_bundles.version import __version__

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
AddFlow = Callable[..., str]


def test_a_thread_travels(command: Command, flow: AddFlow, tmp_path: Path) -> None:
    """`export` writes one file and does not write over another; imported elsewhere it verifies and
    is not granted.
    """
    flow("sulk")
    thread = command("run", "sulk", "--detach").stdout.strip()
    assert command("thread", thread, "-f").returncode == 3
    parcel = tmp_path / "thread.tar.zst"
    assert command("export", thread, str(parcel)).returncode == 0
    assert command("export", thread, str(parcel)).returncode == 1
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / "workflow.yaml").write_text(f'seeded: "{__version__}"\n')
    elsewhere = {"UNCAGED_WORKFLOW_HOME": str(other)}
    imported = command("import", str(parcel), **elsewhere)
    assert (imported.returncode, imported.stdout) == (0, f"imported {thread}\n")
    assert command("verify", thread, **elsewhere).returncode == 0
    refused = command("fork", thread, **elsewhere)
    assert refused.returncode == 1
    assert "granted" in refused.stderr
    assert command("import", str(parcel), **elsewhere).returncode == 1
    assert command("import", str(tmp_path / "none"), **elsewhere).returncode in (2, 5)


def test_ended_threads_are_archived_and_pruned(command: Command, flow: AddFlow) -> None:
    """Archived threads are shown as before; prune says first what would go."""
    flow("echo")
    thread = command("run", "echo", "--detach").stdout.strip()
    assert command("thread", thread, "-f").returncode == 0
    before = command("thread", thread).stdout
    assert "archived 1 thread," in command("archive", "--older-than", "0d").stdout
    assert command("thread", thread).stdout == before
    assert command("archive").returncode == 2
    would = command("prune", "--older-than", "0d", "--dry-run")
    assert thread in would.stdout
    assert "would remove 1 thread" in would.stdout
    assert json.loads(command("prune", "--older-than", "0d", "--json").stdout)["threadIds"] == [
        thread
    ]
    assert command("thread", thread).returncode == 5


def test_what_init_prints_next_works(environment: dict[str, str], tmp_path: Path) -> None:
    """The commands that `init` prints run in a shell where it was called, also for a program that
    is not on PATH.
    """
    program = tmp_path / "bin" / "uncaged-workflow"
    program.parent.mkdir()
    program.symlink_to(Path(sys.executable).parent / "uncaged-workflow")

    def shell(line: str) -> subprocess.CompletedProcess[str]:
        bare = {**environment, "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, env=bare, capture_output=True, text=True, check=False
        )

    done = shell("bin/uncaged-workflow init 'my starter'")
    test, add, run = [line.removeprefix("next: ") for line in done.stderr.splitlines()]
    for line in (test, f"{add} --accept", run):
        ran = shell(line)
        assert ran.returncode == 0, (line, ran)
    assert "(asked for)" in ran.stdout
    assert shell("bin/uncaged-workflow init 'my starter'").returncode == 2


def test_demo_writes_a_repository(command: Command, tmp_path: Path) -> None:
    """The directory is a git repository; one that holds something is left alone."""
    done = command("demo", "shop")
    assert done.returncode == 0
    assert (
        "next: uncaged-workflow run solve-issue --workspace shop --prompt - < shop/ISSUE.md"
        in done.stderr
    )
    assert (tmp_path / "shop" / ".git").is_dir()
    assert command("demo", "shop").returncode == 2


def test_doctor_tries_each_thing(command: Command) -> None:
    """Every check has a line, and an agent that answers by default is named with the reason."""
    done = command("doctor")
    assert done.returncode == 0, done.stdout
    names = [line[8:].split()[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert {
        "python",
        "git",
        "store",
        "registry",
        "bubblewrap",
        "landlock",
        "config",
        "agents",
        "agent",
    } <= set(names)
    assert "repair answers by default" in done.stdout


def test_doctor_says_what_to_do(command: Command, tmp_path: Path) -> None:
    """A store that others can read and a configuration that cannot be read are problems with a
    remedy; exit 1.
    """
    (tmp_path / "store").chmod(0o755)
    (tmp_path / "store" / "config.yaml").write_text("agentz: {}\n")
    done = command("doctor")
    assert done.returncode == 1
    assert f"→ chmod 700 {tmp_path / 'store'}" in done.stdout
    assert "agentz" in done.stdout
    assert "2 problems: config, store" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["import", "none.tar.zst"], 5, "error: no file 'none.tar.zst'"),
        (["import", "none.json"], 5, "error: no file 'none.json'"),
        (["import", "."], 2, "error: '.' cannot be read: Is a directory"),
        (["import", "echo.py"], 2, "a flow is taken in with: uncaged-workflow add NAME echo.py"),
        (["run", "echo", "--params", "none"], 5, "error: no file 'none'"),
        (["run", "echo", "--params", "."], 2, "error: '.' cannot be read: Is a directory"),
        (["add", "other", "none.py"], 5, "error: no file 'none.py'"),
        (["demo", "/proc/shop"], 2, "error: cannot write '/proc/shop': "),
        (["init", ""], 2, "error: the directory name is empty"),
        (["demo", ""], 2, "error: the directory name is empty"),
        (["init", "/proc/flow"], 2, "error: cannot write '/proc/flow': "),
        (["demo", "echo.py/shop"], 2, "error: cannot write 'echo.py/shop': "),
    ],
)
def test_a_wrong_file_is_told_in_the_same_words_by_every_verb(
    command: Command, flow: AddFlow, words: list[str], code: int, message: str
) -> None:
    """Missing is 5, anything else 2, and nothing of it is a bug of ours."""
    flow("echo")
    done = command(*words)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
