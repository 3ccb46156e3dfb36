"""Secrets that agents were given, and that they say wherever they can, are nowhere afterwards: not
on disk, not on a screen.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard
from testbed.bundles import source
from testbed.forked_commands import ForkedCommands
from testbed.modelserver import ModelServer, Seen, Turn, fails, says, serving
from testbed.processes import end_workers, workers_of
from testbed.turns import argv
from uncaged_bundles.version import __version__

pytestmark = pytest.mark.slow

KEPT = "kept-hunter22-value"
PASSED = "passed-hunter33-value"
SECRETS = (KEPT, PASSED)
SCHEMA = {
    "type": "object",
    "properties": {"status": {"enum": ["done"]}, "words": {"type": "string"}},
    "required": ["status", "words"],
}
ROLE = {"description": "d", "systemPrompt": "s", "extractPrompt": "e", "schema": SCHEMA}
LEAKY = source(
    "leaky",
    """
    said = []
    for name in ("teller", "loser", "protocol", "model"):
        try:
            step = yield {"role": {"name": name}}
            said.append(step["content"] + step["meta"]["words"])
        except EffectError as problem:
            said.append(str(problem.error))
    try:
        yield {"llm": {"prompt": "Tell me.", "model": "quick"}}
    except EffectError as problem:
        said.append(str(problem.error))
    yield {"role": {"name": "lacking"}}
    return {"success": True, "message": " ".join(said), "data": said}
""",
    kind="workflow",
    roles=dict.fromkeys(("teller", "loser", "protocol", "model", "lacking"), ROLE),
    policy={"role": {}, "llm": {}},
)
TELLER = """
echo "err $KEY" >&2
echo "I was given $KEY."
if test -e "$HOME/once"; then words=$KEY; else touch "$HOME/once"; words=7; fi
printf '```json\\n{"status": "done", "words": "%s"}\\n```\\n' "$words" | sed 's/"7"/7/'
cat > "$HOME/heard-by-teller"
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "store").mkdir(mode=0o700)
    (tmp_path / "store" / "workflow.yaml").write_text(f'seeded: "{__version__}"\n')
    yield tmp_path
    assert end_workers(tmp_path / "store") == []


class Screen:
    """Runs commands as a person and keeps all that they print."""

    def __init__(self, home: Path, forked: ForkedCommands) -> None:
        self._home = home
        self._forked = forked
        self.seen: list[str] = []

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in ("PATH", "LANG", "XDG_RUNTIME_DIR")
        }
        environment = {
            **kept,
            "HOME": str(self._home),
            "UNCAGED_WORKFLOW_HOME": str(self._home / "store"),
            "MY_KEY": PASSED,
        }
        done = self._forked.run(words, env=environment, cwd=self._home, stdin=stdin, timeout_s=120)
        self.seen.append(f"{words}: {done.stdout}{done.stderr}")
        return done


def config(url: str) -> Mapping[str, object]:
    """Return a config that gives each agent a secret, by its environment or as its key."""
    shell = {"use": "command", "env": {"KEY": "secret:KEPT"}}
    model = {"use": "openai", "baseUrl": f"{url}/v1", "model": "tiny", "key": "secret:PASSED"}
    words = ["run:echo $KEY >&2; echo $KEY", 'block:{"status": "done", "words": "by terminal"}']
    return {
        "agents": {
            "teller": {**shell, "argv": ["sh", "-c", TELLER]},
            "loser": {**shell, "argv": ["sh", "-c", "echo $KEY; echo $KEY >&2; exit 3"]},
            "protocol": {"use": "acp", "argv": argv(*words), "env": {"KEY": "secret:KEPT"}},
            "model": model,
            "lacking": {"use": "command", "argv": ["secret:KEPT"]},
        },
        "roles": {name: name for name in ("teller", "loser", "protocol", "model", "lacking")},
        "models": {"quick": model},
        "secrets": {"PASSED": {"env": "MY_KEY"}},
    }


def holding(root: Path, text: str) -> list[Path]:
    """Return the files below *root* with a text, but for the one in which a person keeps it."""
    files = [path for path in root.rglob("*") if path.is_file() and path.parent.name != "keys"]
    return [path for path in files if text.encode() in path.read_bytes()]


@contextmanager
def leaking(gate: threading.Event, reached: threading.Event) -> Iterator[ModelServer]:
    """Serve a model that says its key in an answer, which waits for *gate*, and in a failure."""

    def play(seen: Seen) -> Turn:
        key = seen.headers["authorization"]
        if "Tell me." in json.dumps(seen.body["messages"]):
            message = f"{key} and {KEPT[:4]} are not good enough"
            return fails(400, "invalid_request_error", message)
        reached.set()
        block = json.dumps({"status": "done", "words": key})
        return says(f"You said {key}.\n", f"```json\n{block}\n```\n", gate=gate)

    with serving(play) as server:
        yield server


def look_everywhere(screen: Screen, thread: str) -> None:
    """Run every verb that shows something of the thread or of the machine."""
    for words in (
        ["thread", thread, "--full"],
        ["thread", thread, "--json"],
        ["threads"],
        ["threads", "--json"],
        ["agents", "--json"],
    ):
        assert screen.run(*words).returncode == 0
    for words in (
        ["verify", thread],
        ["keys", "list"],
        ["doctor"],
        ["resume", thread],
        ["run", "leaky", "--json"],
    ):
        screen.run(*words)


def test_a_planted_secret_is_found_nowhere(home: Path, forked: ForkedCommands) -> None:
    """Answers, data, attempts, failures, both streams, an endpoint's own words, terminals,
    listings, `ps`, an export.
    """
    gate = threading.Event()
    reached = threading.Event()
    screen = Screen(home, forked)
    (home / "leaky.py").write_bytes(LEAKY)
    with leaking(gate, reached) as server:
        (home / "store" / "config.yaml").write_text(json.dumps(config(server.url)))
        assert screen.run("keys", "set", "KEPT", stdin=KEPT).returncode == 0
        assert screen.run("add", "leaky", "leaky.py", "--accept").returncode == 0
        thread = screen.run("run", "leaky", "--detach").stdout.strip()
        assert reached.wait(60)
        assert "role model" in screen.run("ps").stdout
        screen.run("ps", "--json")
        running = [
            str((process.cmdline(), process.environ())) for process in workers_of(home / "store")
        ]
        gate.set()
        followed = screen.run("thread", thread, "--follow")
        heard = json.dumps(server.asked)
    assert (
        followed.returncode,
        "'secret:KEPT' is not on PATH" in followed.stdout + followed.stderr,
    ) == (4, True)
    look_everywhere(screen, thread)
    assert screen.run("export", thread, "out.tar.zst").returncode == 0
    with (home / "out.tar.zst").open("rb") as file:
        exported = zstandard.ZstdDecompressor().stream_reader(file).read()
    records = json.loads(screen.run("thread", thread, "--json").stdout)["records"]
    assert sum("meta" in record for record in records) == 3, records
    for secret, name in ((KEPT, b"secret:KEPT"), (PASSED, b"secret:PASSED")):
        assert name in exported
        assert secret.encode() not in exported
        assert [one for one in (*screen.seen, *running, heard) if secret in one] == []
        assert holding(home, secret) == []
