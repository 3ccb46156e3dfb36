"""The verb `doctor --live`: a line for each agent with its remedy, and the same as JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.health import FAKES, PLANTED
from testbed.modelserver import ModelServer, fails, says, serving

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]


def configure(tmp_path: Path, server: ModelServer) -> None:
    url = server.base_url("openai")
    (tmp_path / "store" / "config.yaml").write_text(
        "agents:\n"
        f"  good: {{use: openai, baseUrl: '{url}', model: claude-haiku-4-5, key: secret:K}}\n"
        "  cli: {use: program, row: claude}\n"
        "  gone: {use: acp, row: kimi}\n"
        "agent: good\n"
        "models:\n"
        f"  wrong: {{use: openai, baseUrl: '{url}', model: other, key: secret:K}}\n"
        "secrets: {K: {env: KEY_HERE}}\n"
        "environment: [PLAY, CALLS]\n"
    )
    (tmp_path / "play").write_text("{}")


def around(tmp_path: Path, environment: dict[str, str]) -> dict[str, str]:
    files = {"PLAY": str(tmp_path / "play"), "CALLS": str(tmp_path / "calls")}
    return {"PATH": f"{FAKES}:{environment['PATH']}", "KEY_HERE": PLANTED, **files}


def test_each_agent_has_its_line(
    command: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    """An agent's line has its answer, duration and usage, or the problem and its remedy, exit 1; no
    key is printed.
    """
    with serving(
        [
            says("ready", input_tokens=1000, output_tokens=2),
            fails(401, "authentication_error", f"bad key {PLANTED}"),
        ]
    ) as server:
        configure(tmp_path, server)
        done = command("doctor", "--live", **around(tmp_path, environment))
        url = server.base_url("openai")
        assert len(server.asked) == 2
    lines = done.stdout.splitlines()
    good = next(line for line in lines if line.startswith("ok      good        "))
    assert f"claude-haiku-4-5 at {url} answered; " in good
    assert good.endswith("s, 1,002 tokens, $0.00101")
    assert next(line for line in lines if line.startswith("ok      cli ")).endswith(
        "s, 105 tokens (70 cached), $0.125"
    )
    gone = next(
        index
        for index, line in enumerate(lines)
        if line.startswith("problem gone        Kimi Code is not installed")
    )
    assert (
        lines[gone + 1]
        == f"{'':<20}→ install it (see https://www.kimi.com/code) and run `kimi login`"
    )
    wrong = next(index for index, line in enumerate(lines) if line.startswith("problem wrong "))
    assert "does not accept the key" in lines[wrong]
    assert "bad key secret:K" in lines[wrong]
    assert lines[wrong + 1].strip() == "→ put a valid one where its secret comes from"
    assert (done.returncode, "2 problems: gone, wrong" in done.stderr) == (1, True)
    assert PLANTED not in done.stdout + done.stderr


def test_the_same_as_json(command: Command, environment: dict[str, str], tmp_path: Path) -> None:
    """JSON has numbers; without --live no agent is asked."""
    with serving([says("ready", input_tokens=1000, output_tokens=2), says("ready")]) as server:
        configure(tmp_path, server)
        more = around(tmp_path, environment)
        assert "live" not in command("doctor", "--json", **more).stdout
        assert server.asked == []
        found = {
            one["name"]: one
            for one in json.loads(command("doctor", "--live", "--json", **more).stdout)
        }
    live = found["good"]["live"]
    assert (live["use"], live["where"], live["asked"], live["model"]) == (
        "openai",
        "agents.good in config.yaml",
        True,
        "claude-haiku-4-5",
    )
    assert (live["usage"]["inputTokens"], live["usage"]["cost"], 0 < live["seconds"] < 60) == (
        1000,
        0.00101,
        True,
    )
    assert (
        found["gone"]["level"],
        found["gone"]["live"]["asked"],
        found["gone"]["live"]["model"],
    ) == ("problem", False, None)
    assert "live" not in found["git"]


def test_what_is_lacking_is_told_without_asking(
    command: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    """A missing key is reported without asking the agent; exit 1."""
    with serving([]) as server:
        configure(tmp_path, server)
        done = command("doctor", **{**around(tmp_path, environment), "KEY_HERE": ""})
        assert server.asked == []
    lines = done.stdout.splitlines()
    problem = lines.index(
        "problem good        secret:K comes from the variable KEY_HERE, which is not set"
    )
    assert lines[problem + 1] == f"{'':<20}→ set it"
    assert (done.returncode, "3 problems: gone, good, wrong" in done.stderr) == (1, True)


@pytest.mark.parametrize("option", [[], ["--live"]])
def test_a_slip_in_the_config_is_told_once(
    command: Command, tmp_path: Path, option: list[str]
) -> None:
    """A wrong setting is reported once, with its name and the correct values; it is not tried."""
    (tmp_path / "store" / "config.yaml").write_text(
        "agents:\n"
        "  a: {use: acp}\n"
        "  b: {use: program, row: nope}\n"
        "  c: {use: anthropic, modell: x}\n"
        "agent: nobody\n"
        "flows: {solve-isue: {agent: repair}}\n"
    )
    done = command("doctor", *option)
    problems = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("problem")]
    assert sorted(problems) == ["a", "b", "c", "nobody"]
    assert "note    config      flows.solve-isue: no such flow" in done.stdout
    assert done.returncode == 1


def test_a_fresh_machine_has_an_agent_that_costs_nothing(command: Command) -> None:
    """The built-in repair is what is left, and it is fine."""
    done = command("doctor", "--live", PATH="/usr/bin:/bin")
    assert (
        "ok      repair      built in: no model, no key; it works in the sandbox; " in done.stdout
    )
    assert done.returncode == 0
