"""The command on a real (pseudo) terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.terminal import on_terminal

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
AddFlow = Callable[..., str]


def test_a_followed_thread_is_clean_and_fits(
    flow: AddFlow, environment: dict[str, str], tmp_path: Path
) -> None:
    """Steps appear as lines; what the bundle wrote cannot clear the screen, set the title, or use
    markup.
    """
    flow("dirty")
    code, seen = on_terminal(["run", "dirty"], environment, tmp_path)
    assert code == 0
    assert "ok [red]x[/red]" in seen
    assert "owned" not in seen
    assert "\x1b[2J" not in seen
    assert "\x9b" not in seen
    assert "\u202e" not in seen
    assert "\x1b[32m" in seen


def test_no_color_means_no_colour(
    flow: AddFlow, environment: dict[str, str], tmp_path: Path
) -> None:
    """With NO_COLOR a terminal gets no colour, neither in tables nor in a followed thread."""
    flow("dirty")
    for words in (["run", "dirty"], ["threads"], ["doctor"]):
        code, seen = on_terminal(words, {**environment, "NO_COLOR": "1"}, tmp_path)
        assert code == 0
        assert not re.search(r"\x1b\[[0-9;]*m", seen), words


def test_a_dumb_terminal_gets_plain_lines(
    flow: AddFlow, environment: dict[str, str], tmp_path: Path
) -> None:
    """Nothing moves and nothing is coloured where TERM says that it cannot be."""
    flow("dirty")
    code, seen = on_terminal(["run", "dirty"], {**environment, "TERM": "dumb"}, tmp_path)
    assert (code, "\x1b" in seen) == (0, False)


def test_a_person_is_asked_once(environment: dict[str, str], tmp_path: Path, flow: AddFlow) -> None:
    """On a terminal `add` asks; a yes adds, and the same bytes are not asked about again."""
    flow("echo")
    path = tmp_path / "mine.py"
    path.write_text((tmp_path / "echo.py").read_text() + "\n")
    code, seen = on_terminal(["add", "mine", str(path)], environment, tmp_path, typed=b"n\n")
    assert code == 1
    assert "Grant this? [y/N]" in seen
    code, seen = on_terminal(["add", "mine", str(path)], environment, tmp_path, typed=b"y\n")
    assert code == 0
    code, seen = on_terminal(["add", "other", str(path)], environment, tmp_path)
    assert (code, "Grant this?" in seen) == (0, False)


ROLES = """descriptor = {
    "contract": 1,
    "name": "talk",
    "description": "One role.",
    "kind": "workflow",
    "roles": {"coder": {"description": "d", "systemPrompt": "s", "extractPrompt": "e", "schema": {"type": "object"}}},
    "policy": {"role": {}},
}


def run(input, options):
    yield {"role": {"name": "coder"}}
"""


def test_a_coding_program_is_asked_about_once(
    environment: dict[str, str], tmp_path: Path, flow: AddFlow
) -> None:
    """A no is kept, a yes is kept and says who answers and why; a pipe is never asked."""
    flow("talk", ROLES)
    (tmp_path / "bin").mkdir()
    for name in ("claude", "codex"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    mine = {**environment, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    words = ["run", "talk", "--max-rounds", "0"]
    config = Path(environment["UNCAGED_WORKFLOW_HOME"]) / "config.yaml"
    piped = subprocess.run(
        [sys.executable, "-m", "uncaged_cli", *words],
        env=mine,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert (piped.returncode, config.exists()) == (6, False)
    code, seen = on_terminal(words, mine, tmp_path, typed=b"n\n")
    assert (
        code,
        "May claude answer" in seen,
        "agent repair (no agent" in " ".join(seen.split()),
    ) == (6, True, True)
    code, seen = on_terminal(words, mine, tmp_path, typed=b"y\n")
    assert (code, "May codex answer" in seen) == (6, True)
    assert "agent codex (OpenAI Codex is on PATH, and you said yes to it" in " ".join(seen.split())
    assert config.read_text() == "consent: [not claude, codex]\n"
    code, seen = on_terminal(words, mine, tmp_path)
    assert (code, "May" in seen) == (6, False)
