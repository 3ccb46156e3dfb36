"""The verbs `pack` and `explain` through the real command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.sentences import flow_source

pytestmark = pytest.mark.slow
Command = Callable[..., subprocess.CompletedProcess[str]]
GAMES = """
name: games
description: Small games.
flows: [toss, dice]
rules: '<Start> = heads or tails -> { flow: "toss", params: {} };'
"""


def test_a_pack_is_registered_shown_disabled_and_removed(
    tmp_path: Path, command: Command, flow: Callable[[str, str], str]
) -> None:
    """Each verb does what it says, and `explain` follows at once."""
    flow("toss", flow_source("toss", "toss a coin").decode())
    (tmp_path / "games.yaml").write_text(GAMES)
    done = command("pack", "add", "games.yaml")
    assert done.returncode == 0, done.stderr
    assert "'dice' is not in the registry" in done.stderr
    shown = json.loads(command("pack", "show", "games", "--json").stdout)
    assert (shown["flows"], shown["missing"], shown["enabled"]) == (["toss"], ["dice"], True)
    for sentence in ("heads or tails", "toss a coin"):
        found = json.loads(command("explain", sentence, "--json").stdout)
        assert found["calls"]["calls"] == [{"flow": "toss", "params": {}}]
        assert found["model"]["asked"] is False
    assert command("pack", "disable", "games").returncode == 0
    found = json.loads(command("explain", "toss a coin", "--json").stdout)
    assert found["result"] == "miss"
    assert found["miss"]["enable"] == "uncaged-workflow pack enable games"
    assert command("pack", "enable", "games").returncode == 0
    listed = json.loads(command("pack", "list", "--json").stdout)["packs"]
    assert next(pack for pack in listed if pack["pack"] == "games")["enabled"] is True
    assert json.loads(command("pack", "scan", "--fuzzy", "--json").stdout)["collisions"] == []
    assert command("pack", "remove", "games").returncode == 0
    assert "no pattern reads" in command("explain", "heads or tails").stderr
    assert command("pack", "show", "games").returncode == 5
    assert json.loads(command("threads", "--json").stdout) == []


def test_a_pack_file_with_a_wrong_rule_is_refused(tmp_path: Path, command: Command) -> None:
    """The message has the file, the line and the column; a missing file is not found."""
    (tmp_path / "wrong.yaml").write_text("name: wrong\nrules: |\n  <Start> =\n    (a;\n")
    done = command("pack", "add", "wrong.yaml")
    assert done.returncode == 2
    assert "wrong.agr(2," in done.stderr
    assert command("pack", "add", "absent.yaml").returncode == 5


def test_an_explanation_of_a_miss_says_what_a_model_would_get(
    command: Command, flow: Callable[[str, str], str]
) -> None:
    """Without a model the explanation says so, with the nearest flow and a corrected sentence; a
    sentence that begins with @ is a verb.
    """
    flow("weather", flow_source("weather", "show the weather").decode())
    found = json.loads(command("explain", "show the wether", "--json").stdout)
    assert found["miss"]["corrected"] == "show the weather"
    assert found["miss"]["nearest"][0]["flow"] == "weather"
    assert found["model"]["asked"] is False
    for line, verb in (
        ("@threads", "threads"),
        ("@keys", "keys list"),
        ("@files", "pack show --brief -- files"),
        ("@packs", "do @packs"),
    ):
        assert json.loads(command("explain", line, "--json").stdout)["verb"] == verb
    assert "no verb 'thrads'; did you mean" in command("explain", "@thrads").stderr
