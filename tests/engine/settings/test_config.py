"""What a config file may say, what it means, and that an absent one costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_bundles.storage.store import Store
from uncaged_engine.settings.config import (
    AgentSettings,
    Config,
    FlowSettings,
    LimitSettings,
    McpServerSettings,
    SecretSource,
)
from uncaged_engine.settings.loading import load

FULL = """
agents:
  mine: {use: command, argv: [my-agent, --quiet], env: {TOKEN: "secret:MINE"}}
  demo: {use: scripted, file: answers.yaml}
agent: mine
roles: {reviewer: demo}
flows:
  solve-issue: {agent: demo, roles: {coder: mine}, maxRounds: 30, maxSteps: 99, testCommand: make check}
limits: {maxRounds: 12, maxSteps: 500, bundleSeconds: 2, agentSeconds: 90.5, historyCharacters: 5000}
sandbox: landlock
secrets:
  MINE: {env: MY_TOKEN}
  OTHER: {file: keys/other}
serve: {port: 9000}
environment: [MY_EDITOR]
testCommand: pytest -q
"""


def written(store: Store, text: str) -> Config:
    store.config_path.write_text(text, "utf-8")
    return load(store)


def test_a_full_file_means_what_it_says(store: Store) -> None:
    """Every key arrives under its own name and unit; a secret's relative file starts at the
    config's directory.
    """
    assert written(store, FULL) == Config(
        path=store.config_path,
        agents={
            "mine": AgentSettings(
                use="command",
                settings={"argv": ["my-agent", "--quiet"], "env": {"TOKEN": "secret:MINE"}},
            ),
            "demo": AgentSettings(use="scripted", settings={"file": "answers.yaml"}),
        },
        agent="mine",
        roles={"reviewer": "demo"},
        flows={
            "solve-issue": FlowSettings(
                agent="demo",
                roles={"coder": "mine"},
                max_rounds=30,
                max_steps=99,
                test_command="make check",
            )
        },
        limits=LimitSettings(
            max_rounds=12, max_steps=500, bundle_s=2, agent_s=90.5, history_chars=5000
        ),
        sandbox="landlock",
        secrets={
            "MINE": SecretSource(env="MY_TOKEN"),
            "OTHER": SecretSource(file=store.root / "keys" / "other"),
        },
        serve_port=9000,
        environment=("MY_EDITOR",),
        test_command="pytest -q",
    )


@pytest.mark.parametrize("text", ["", "  \n", "# nothing is set\n", "{}\n"])
def test_a_file_that_says_nothing_is_the_default(store: Store, text: str) -> None:
    """Blank, a comment, an empty mapping: all mean the defaults, as a missing file does."""
    assert load(store) == Config()
    assert written(store, text) == Config(path=store.config_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("agnet: mine", "agnet: unknown key; did you mean 'agent'?"),
        ("limits: {maxRound: 3}", "limits.maxRound: unknown key; did you mean 'maxRounds'?"),
        ("flows: {a: {rounds: 3}}", "flows.a.rounds: unknown key"),
        ("prices: {m: {inptu: 3}}", "prices.m.inptu: unknown key; did you mean 'input'?"),
        ("secrets: {A: b}", "secrets.A: must be a mapping of keys to values, not 'b'"),
        ("agents: [1]", "agents: must be a mapping of keys to values, not [1]"),
        ("secrets: {A: {enviroment: B}}", "secrets.A.enviroment: unknown key"),
        ("zebra: red", "known here: agents, agent, roles"),
        (
            "limits: {maxRounds: many}",
            "limits.maxRounds: Input should be a valid integer, not 'many'",
        ),
        ("limits: {maxRounds: -1}", "limits.maxRounds: "),
        ("sandbox: none", "sandbox: "),
        ("agents: {a: {argv: [x]}}", "agents.a.use: is missing"),
        ("secrets: {A: {}}", "secrets.A: give exactly one of env"),
        ("secrets: {A: {env: B, file: c}}", "secrets.A: give exactly one of env"),
        ("environment: ['A=B']", "environment.0: 'A=B' is not a variable's name"),
        ("agent: a\nagent: b", "the key 'agent' is there twice"),
        ("agents: [a]", "agents: "),
        ("- a", "must be a mapping of settings, not list"),
        ("agent: [", "not YAML"),
        ("agent: " + "[" * 20_000, "nested deeper than 48 levels"),
        ("agent: " + "{a: " * 20_000, "nested deeper than 48 levels"),
        ("agents: &all {}\nroles: *all", "anchors and aliases"),
        (
            "agents: {a: {use: command, apiKey: sk-123}}",
            "agents.a.apiKey: a credential does not belong here; write secret:NAME",
        ),
        (
            "agents: {a: {use: command, env: {MY_TOKEN: abc}}}",
            "agents.a.env.MY_TOKEN: a credential does not belong here",
        ),
    ],
)
def test_a_slip_is_named_with_its_place(store: Store, text: str, words: str) -> None:
    """The message has the file, the dotted key and, for an unknown key, the nearest known one."""
    with pytest.raises(UsageError) as caught:
        written(store, text)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(store.config_path))


def test_all_slips_are_told_at_once(store: Store) -> None:
    """A report has every mistake of the file, so one edit can fix them all."""
    with pytest.raises(UsageError) as caught:
        written(store, "agnet: a\nlimits: {maxRounds: many}\n")
    assert len(str(caught.value).splitlines()) == 2


def test_the_worker_gets_the_variables_of_secrets_and_agents_do_not(store: Store) -> None:
    """A secret's variable travels to the worker, which resolves it; children see only harmless and
    named ones.
    """
    config = written(store, FULL)
    environment = {
        "PATH": "/bin",
        "MY_TOKEN": "t",
        "MY_EDITOR": "ed",
        "AWS_SECRET_ACCESS_KEY": "k",
        "GIT_DIR": "/x",
    }
    assert config.carried(environment) == {"PATH": "/bin", "MY_TOKEN": "t", "MY_EDITOR": "ed"}
    assert config.for_agents(environment) == {"PATH": "/bin", "MY_EDITOR": "ed"}


@pytest.mark.slow
def test_no_heavy_library_is_loaded_without_settings(tmp_path: Path) -> None:
    """Loading the config of a store that has none imports neither yaml nor pydantic."""
    program = (
        "import sys; from types import SimpleNamespace; from pathlib import Path; from uncaged_engine.settings.loading import load;"
        f"load(SimpleNamespace(config_path=Path({str(tmp_path / 'config.yaml')!r})));"
        "print({'yaml', 'pydantic'} & set(sys.modules))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True
        ).stdout
        == "set()\n"
    )
    (tmp_path / "config.yaml").write_text("agent: x\n", "utf-8")
    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert "pydantic" in loaded


def test_mcp_servers_have_the_keys_of_their_documentation(store: Store) -> None:
    """A program with its arguments or an address, with the tools that need no consent."""
    config = written(
        store,
        """
mcpServers:
  weather: {command: npx, args: [-y, weather], env: {A_KEY: "secret:A"}, trusted: [get]}
  wiki:
    url: https://wiki.example.com/mcp
    headers: {Authorization: "Bearer secret:A"}
    trusted: true
    timeoutSeconds: 5
embeddings: {model: small, key: "secret:A"}
collisions: {packs: ask, threshold: 0.2}
""",
    )
    assert config.mcp_servers == {
        "weather": McpServerSettings(
            command=("npx", "-y", "weather"), environment={"A_KEY": "secret:A"}, trusted=("get",)
        ),
        "wiki": McpServerSettings(
            url="https://wiki.example.com/mcp",
            headers={"Authorization": "Bearer secret:A"},
            trusted=None,
            timeout_s=5.0,
        ),
    }
    assert config.embeddings == AgentSettings(
        use="openai", settings={"model": "small", "key": "secret:A"}
    )
    assert (config.collisions.packs, config.collisions.threshold) == ("ask", 0.2)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("Weather: {command: x}", "lower-case words"),
        ("{long}: {{command: x}}".format(long="x" * 31), "at most 30 characters"),
        ("w: {}", "either command (a program) or url"),
        ("w: {command: x, url: https://a.example.com}", "either command (a program) or url"),
        ("w: {url: nothing}", "mcpServers.w.url"),
        ("w: {command: x, env: {API_TOKEN: clear-text}}", "mcpServers.w.env.API_TOKEN"),
        ("w: {url: https://a.example.com, headers: {authorization: Bearer x}}", "secret:NAME"),
        ("w: {comand: x}", "did you mean 'command'"),
        ("w: {command: x, timeoutSeconds: 0}", "timeoutSeconds"),
    ],
)
def test_a_wrong_mcp_server_is_refused_with_its_key(store: Store, server: str, words: str) -> None:
    """No credential in clear text, and no server with two addresses, is accepted."""
    with pytest.raises(UsageError) as caught:
        written(store, f"mcpServers:\n  {server}\n")
    assert words in str(caught.value)
    assert "clear-text" not in str(caught.value)
