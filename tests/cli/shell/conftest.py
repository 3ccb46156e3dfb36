"""A store with flows for lines: `repeat` returns its number, `slow` sleeps, `sulk` fails."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from testbed.bundles import source
from testbed.sentences import flow_source, parameters

from ..conftest import register_flow

Command = Callable[..., subprocess.CompletedProcess[str]]
SULK = """
    yield {"null": {"value": 1}}
    return {"success": False, "message": "not today"}
"""


@pytest.fixture
def prepared(command: Command, environment: dict[str, str]) -> Command:
    """The command on that store."""
    number = parameters("n", n={"type": "integer"})
    text = flow_source("repeat", "repeat $(n:number) (please)?", schema=number)
    register_flow(environment, "repeat", text)
    for name, pattern, body in (
        ("slow", "be slow", '    yield {"null": {"sleep_s": 600}}\n'),
        ("sulk", "sulk now", SULK),
    ):
        text = source(name, body, patterns=[pattern], policy={"null": {}})
        register_flow(environment, name, text)
    return command
