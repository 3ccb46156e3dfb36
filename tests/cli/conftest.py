"""The real command on a temporary store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testbed.documents import check_document
from testbed.processes import end_workers
from uncaged_bundles.version import __version__

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
    tmp_path: Path, environment: dict[str, str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command and return its result; no run may print a traceback, or JSON that does not
    fit its schema.
    """

    def run(*words: str, stdin: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "uncaged_cli", *words],
            env={**environment, **more},
            cwd=tmp_path,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert "Traceback" not in done.stdout + done.stderr
        check_document(words, done.stdout)
        return done

    return run


@pytest.fixture
def flow(
    tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> Callable[[str], str]:
    """Register one of the flows above and return its hash."""

    def register(name: str, text: str | None = None) -> str:
        path = tmp_path / f"{name}.py"
        path.write_text(bundle_text(name) if text is None else text)
        done = command("add", name, str(path), "--accept")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().partition("@")[2]

    return register
