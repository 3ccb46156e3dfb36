"""The real command on a temporary store."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from testbed.documents import check_document
from testbed.forked_commands import ForkedCommands
from testbed.processes import end_workers
from uncaged_bundles.storage.store import Store
from uncaged_bundles.version import __version__
from uncaged_engine.api import Engine

FLOWS = {
    "echo": """
    for number in range(input["params"].get("times", 2)):
        yield {"output": {"role": "speaker", "content": input["prompt"], "meta": {"status": "said", "number": number}}}
    return {"success": True, "message": "said " + input["prompt"], "data": {"branch": "uncaged/echo/1"}}
""",
    "sulk": """
    yield {"null": {"value": 1}}
    return {"success": False, "message": "not today", "data": None}
""",
    "boom": """
    yield {"null": {"value": 1}}
    raise ValueError("boom")
""",
    "lack": """
    yield {"null": {"lack": "no key for the model; set one"}}
    return {"success": True, "message": "found it"}
""",
    "ask": """
    answer = yield {"ask": {"question": "which one?", "schema": {"type": "integer"}}}
    return {"success": True, "message": f"thanks for {answer}"}
""",
    "slow": """
    yield {"null": {"value": 1}}
    yield {"null": {"sleep_s": 60}}
    return {"success": True, "message": "late"}
""",
    "dirty": """
    yield {"output": {"role": "a\\x1b[2J", "content": "", "meta": {"status": "ok\\x1b]0;owned\\x07 [red]x[/red]"}}}
    return {"success": True, "message": "\\x9b31mred\\u202e"}
""",
}
HEAD = """descriptor = {{
    "contract": 1,
    "name": "{name}",
    "description": "A flow for tests.",
    "kind": "workflow",
    "parameters": {{"type": "object", "properties": {{"times": {{"type": "integer", "description": "how often"}}}}}},
    "roles": {{}},
    "policy": {{"null": {{}}, "ask": {{}}}},
    "continues": True,
}}


def run(input, options):"""


def bundle_text(name: str) -> str:
    """The source of one of the flows above."""
    return HEAD.format(name=name) + FLOWS[name]


def register_flow(environment: Mapping[str, str], name: str, source: bytes) -> str:
    """Register a bundle as `add --accept` does, in this process; returns its hash."""
    engine = Engine(Store.open(Path(environment["UNCAGED_WORKFLOW_HOME"])))
    return engine.add(name, source, accept=lambda _widened: True).hash


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a person with an empty store, into which nothing is seeded."""
    store = tmp_path / "store"
    store.mkdir(mode=0o700)
    (store / "workflow.yaml").write_text(f'seeded: "{__version__}"\n')
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "LANG", "XDG_RUNTIME_DIR", "COVERAGE_PROCESS_START")
    }
    yield {**kept, "HOME": str(tmp_path), "UNCAGED_WORKFLOW_HOME": str(store), "TERM": "xterm"}
    assert end_workers(store) == []


@pytest.fixture
def command(
    tmp_path: Path, environment: dict[str, str], forked: ForkedCommands
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command and return its result; no run may print a traceback, or JSON that does not
    fit its schema.
    """

    def run(*words: str, stdin: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        done = forked.run(
            words, env={**environment, **more}, cwd=tmp_path, stdin=stdin, timeout_s=120
        )
        assert "Traceback" not in done.stdout + done.stderr
        check_document(words, done.stdout)
        return done

    return run


@pytest.fixture
def flow(tmp_path: Path, environment: dict[str, str]) -> Callable[[str], str]:
    """Register one of the flows above and return its hash; its file stays in the directory of the
    test.
    """

    def register(name: str, text: str | None = None) -> str:
        source = bundle_text(name) if text is None else text
        (tmp_path / f"{name}.py").write_text(source)
        return register_flow(environment, name, source.encode())

    return register
