"""`model` through the real command, and by a sentence."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
CONFIG = """\
# two models on this machine
models:
  large: {use: openai, baseUrl: "http://127.0.0.1:9/v1", model: a}
  small: {use: openai, baseUrl: "http://127.0.0.1:9/v1", model: b}  # the quick one
model: large
"""


@pytest.fixture
def config(environment: dict[str, str]) -> Path:
    """The config of a store with two models."""
    path = Path(environment["UNCAGED_WORKFLOW_HOME"]) / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CONFIG)
    return path


def test_a_model_is_chosen_and_the_other_lines_stay(command: Command, config: Path) -> None:
    """The name is checked against the config, whose comments are kept; a list shows the choice."""
    assert command("model", "small").returncode == 0
    assert config.read_text() == CONFIG.replace("model: large", "model: small")
    assert json.loads(command("model", "--json").stdout) == {
        "default": "small",
        "models": [{"name": "large", "use": "openai"}, {"name": "small", "use": "openai"}],
    }
    assert "small" in command("model").stdout
    unknown = command("model", "huge")
    assert unknown.returncode == 5
    assert "config.yaml has no model 'huge'; there are: large, small" in unknown.stderr
    assert "small" in config.read_text()


def test_a_sentence_chooses_a_model(command: Command, config: Path) -> None:
    """The name in the sentence is the verb's argument."""
    done = command("do", "please use the model small")
    assert done.returncode == 0, done.stderr
    assert "model: small" in config.read_text()
    assert command("do", "use the model --json").returncode == 5
