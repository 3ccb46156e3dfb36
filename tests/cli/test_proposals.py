"""The verbs of proposals: listed, shown, accepted with consent, rejected."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.proposals import Proposals

from .conftest import bundle_text

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
AddFlow = Callable[[str], str]


def propose(tmp_path: Path, after: Bundle) -> str:
    """Propose a version of `echo`, and return the proposal's id."""
    store = Store.open(tmp_path / "store")
    flow = Registry(store).flow("echo")
    assert flow is not None
    return (
        Proposals(store)
        .propose(
            flow.name,
            before=flow.hash,
            after=after,
            by="healing",
            evidence={"steps": [{"step": 3, "why": ["name"]}]},
            threads=[],
            now_ms=1_714_963_200_000,
        )
        .id
    )


def test_a_person_decides_about_a_proposal(command: Command, flow: AddFlow, tmp_path: Path) -> None:
    """A wider one shows its permissions first and needs --accept; a rejected one is not listed."""
    flow("echo")
    text = bundle_text("echo").replace('"said "', '"sung "')
    wider = text.replace('"null": {}', '"null": {}, "http": {"hosts": ["a.example"]}')
    refused = propose(tmp_path, read_bundle(text.replace("sung", "told").encode(), KNOWN))
    id = propose(tmp_path, read_bundle(wider.encode(), KNOWN))
    listed = json.loads(command("proposals", "--json").stdout)
    assert {one["proposalId"] for one in listed["proposals"]} == {id, refused}
    assert "asks for more" in command("proposals").stdout
    shown = command("proposal", "show", id).stdout
    assert shown.index("a.example") < shown.index("step: 3") < shown.index("+    return")
    assert json.loads(command("proposal", "show", id, "--json").stdout)["widened"]
    assert command("proposal", "reject", refused, "--json").returncode == 0
    assert "there is no terminal" in command("proposal", "accept", id).stderr
    accepted = json.loads(command("proposal", "accept", id, "--accept", "--json").stdout)
    assert accepted["state"] == "accepted" and accepted["granted"]
    assert "sung x" in command("run", "echo", "--prompt", "x").stdout
    assert "no version is proposed" in command("proposals").stdout
    states = [
        one["state"]
        for one in json.loads(command("proposals", "--all", "--json").stdout)["proposals"]
    ]
    assert sorted(states) == ["accepted", "rejected"]
    assert command("rollback", "echo").returncode == 0
