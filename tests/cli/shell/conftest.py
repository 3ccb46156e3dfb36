"""A store with flows for lines: `repeat` returns its number, `slow` sleeps, `sulk` fails."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.bundles import source
from testbed.sentences import flow_source, parameters

Command = Callable[..., subprocess.CompletedProcess[str]]
SULK = """
    yield {"null": {"value": 1}}
    return {"success": False, "message": "not today"}
"""


@pytest.fixture
def prepared(command: Command, tmp_path: Path) -> Command:
    """The command on that store."""
    number = parameters("n", n={"type": "integer"})
    (tmp_path / "repeat.py").write_bytes(
        flow_source("repeat", "repeat $(n:number) (please)?", schema=number)
    )
    for name, pattern, body in (
        ("slow", "be slow", '    yield {"null": {"sleep_s": 600}}\n'),
        ("sulk", "sulk now", SULK),
    ):
        text = source(name, body, patterns=[pattern], policy={"null": {}})
        (tmp_path / f"{name}.py").write_bytes(text)
    for name in ("repeat", "slow", "sulk"):
        assert command("add", name, f"{name}.py", "--accept").returncode == 0
    return command
