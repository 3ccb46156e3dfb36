"""Recordings of other tools on the command line, on a machine without a browser."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]
START = {"type": "navigate", "url": "https://shop.test/"}
FIELD = {"type": "change", "selectors": ["aria/Search"], "value": "lamp"}
BUTTON = {"type": "click", "selectors": ["aria/Go"], "offsetX": 1, "offsetY": 1}
OURS = {"format": 1, "name": "x", "url": "https://shop.test/", "steps": []}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"title": "x", "steps": [', "not whole JSON"),
        ("page.goto(", "not whole Python"),
        (json.dumps({**OURS, "format": 2}), "the newest known here is 1"),
        (
            json.dumps({**OURS, "steps": [{"do": "navigate", "url": "https://evil.test/"}]}),
            "goes to evil.test",
        ),
        (json.dumps({"title": "x", "steps": [START, FIELD]}), "at least two"),
        (json.dumps({"tests": [], "url": "https://shop.test"}), "has no test"),
        ("", "no step that loads an address"),
    ],
)
def test_a_recording_that_cannot_be_used_is_refused(
    command: Command, tmp_path: Path, text: str, words: str
) -> None:
    """A torn, newer, foreign or too short recording is refused with the reason."""
    file = tmp_path / "recording.txt"
    file.write_text(text)
    done = command("record", "shopping", "--import", str(file), "--accept")
    assert done.returncode == 1 and words in done.stderr, done.stderr
    assert "shopping" not in command("list").stdout


def test_an_import_says_what_it_leaves_out(command: Command, tmp_path: Path) -> None:
    """An import lists what has no step, makes the named parameters, and is saved as unproved where
    there is no browser; the flow gives the recording back.
    """
    (tmp_path / "store" / "config.yaml").write_text("browser: {program: no-such-browser}\n")
    file = tmp_path / "recording.json"
    steps = [START, {"type": "emulateNetworkConditions"}, FIELD, BUTTON]
    file.write_text(json.dumps({"title": "x", "steps": steps}))
    words = ("record", "shopping", "--import", str(file), "--param", "what=lamp", "--accept")
    done = command(*words, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["parameters"] == {"what": "lamp"}
    assert document["proof"]["state"] == "unproved" and document["proof"]["step"] == 1
    assert "no-such-browser" in document["proof"]["reason"]
    assert document["leftOut"] == ["step 2: emulateNetworkConditions is not emulated"]
    assert "left out: step 2" in done.stderr and "${what}" in done.stderr
    back = json.loads(command("export", "shopping", "--format", "recording").stdout)
    assert [step["do"] for step in back["steps"]] == ["navigate", "fill", "click"]
    assert back["steps"][1]["text"] == "lamp"
    assert command("export", "shopping", "--format", "recorder", "--json").returncode == 0
    assert command("record", "shopping").returncode == 2
    assert command("record", "run", "--import", str(file)).returncode == 2
    both = command("record", "shopping", "--import", str(file), "--url", "shop.test")
    assert both.returncode == 2
    wrong = command("record", "shopping", "--import", str(file), "--param", "what=chair")
    assert wrong.returncode == 1 and "no step with the value of what" in wrong.stderr


def test_a_flow_that_is_no_recording_is_not_exported_as_one(
    command: Command, tmp_path: Path
) -> None:
    """A step that asks a model has no form in any recording; the message names it."""
    steps = [
        {"do": "navigate", "url": "https://shop.test/"},
        {"do": "extract", "schema": {"type": "object"}, "text": "prices"},
    ]
    recipe = {"kind": "web", "name": "prices", "description": "Prices.", "steps": steps}
    scope = {"type": "site", "domains": ["shop.test"]}
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({**recipe, "scope": scope, "parameters": {}}))
    assert command("add", "prices", str(file), "--accept").returncode == 0
    refused = command("export", "prices", "--format", "recorder")
    assert refused.returncode == 1 and "step 2 of 'prices' (extract)" in refused.stderr
