"""Consent to a coding program: one yes, kept in the config."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_agents.choose import choose_agents, default_agent, program_needing_consent
from uncaged_agents.consent import installed_programs, record_consent
from uncaged_agents.program.table import table
from uncaged_bundles.errors import UsageError
from uncaged_engine.settings.config import Config
from uncaged_engine.settings.config_file import parse_config


def programs(directory: Path, *names: str) -> dict[str, str]:
    """An environment with these programs and no others."""
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)
    return {"PATH": str(directory)}


def chosen(config: Config, environment: dict[str, str]) -> tuple[str, str]:
    choice = default_agent(config, environment, Path("/here"))
    return choice.name, choice.reason


def asks(
    config: Config, environment: dict[str, str], asked: dict[str, str] | None = None
) -> str | None:
    row = program_needing_consent(
        config, flow="fix", roles=["coder", "reviewer"], asked=asked or {}, environment=environment
    )
    return None if row is None else row.name


def test_each_row_of_the_table_is_whole() -> None:
    """A row makes a command, its placeholders are known, and the output of a program row can hold
    an answer.
    """
    for row in table().values():
        words = {word for word in row.arguments if word.startswith("{")}
        assert words <= {"{rights}", "{schema}", "{continue}", "{prompt}", "{more}"}, row.name
        assert "{more}" in words, row.name
        if row.use == "acp":
            continue
        assert set(row.rights) == {"write", "read", "none"}, row.name
        assert any("{session}" in word for word in row.continuing), row.name
        assert ("{prompt}" in words) == (row.prompt == "argument"), row.name
        assert row.output == "text" or any("answer" in rule.take for rule in row.read), row.name
        assert row.output == "text" or any(rule.ends for rule in row.read), row.name


def test_a_program_is_used_after_a_yes_and_not_before(tmp_path: Path) -> None:
    """Yes and no are both kept; a yes to a program that is gone is no choice; of two the first in
    the config counts.
    """
    environment = programs(tmp_path / "bin", "claude", "gemini")
    assert [row.name for row in installed_programs(environment)] == ["claude", "gemini"]
    assert chosen(Config(), environment)[0] == "repair"
    assert asks(Config(), environment) == "claude"
    assert asks(Config(consent=("not claude",)), environment) == "gemini"
    assert asks(Config(consent=("not claude", "not gemini")), environment) is None
    assert chosen(Config(consent=("not claude", "not gemini")), environment)[0] == "repair"
    assert asks(Config(consent=("not claude", "gemini")), environment) is None
    assert asks(Config(consent=("gemini",)), environment) is None
    name, reason = chosen(Config(consent=("gemini", "claude")), environment)
    assert (name, reason) == (
        "gemini",
        "Gemini CLI is on PATH, and you said yes to it (config.yaml: consent)",
    )
    assert chosen(Config(consent=("codex", "nonsense")), environment)[0] == "repair"


def test_no_question_is_asked_when_nothing_depends_on_it(tmp_path: Path) -> None:
    """An agent that was chosen for all roles, in whatever way, or a key in the environment."""
    environment = programs(tmp_path / "bin", "claude")
    assert asks(Config(agent="repair"), environment) is None
    assert asks(Config(), environment, {"": "repair"}) is None
    assert asks(Config(), environment, {"coder": "repair", "reviewer": "repair"}) is None
    assert asks(Config(), environment, {"coder": "repair"}) == "claude"
    assert asks(Config(), environment, {"codr": "repair"}) is None, (
        "a slip: the run is refused, and no answer must be kept for it"
    )
    assert asks(Config(), {**environment, "ANTHROPIC_API_KEY": "sk-test"}) is None
    assert asks(Config(), programs(tmp_path / "empty")) is None


def test_the_names_of_the_table_need_no_config() -> None:
    """The command of an unlisted agent makes no difference either."""
    for word, use, settings in (
        ("claude", "program", {"row": "claude"}),
        ("gemini", "acp", {"row": "gemini"}),
        ("acp:./mine --fast", "acp", {"argv": ["/here/mine", "--fast"]}),
    ):
        bound = choose_agents(
            Config(),
            flow="fix",
            roles=["coder"],
            asked={"": word},
            environment={},
            directory=Path("/here"),
        )
        name = word.partition(":")[0]
        expected = {"name": name, "use": use, "settings": settings, "reason": "asked for"}
        assert bound["default"] == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"consent: [claude]\n"),
        (b"agent: repair", b"agent: repair\nconsent: [claude]\n"),
        (
            b"# mine\nconsent: [not codex]\nagent: repair\n",
            b"# mine\nconsent: [not codex, claude]\nagent: repair\n",
        ),
        (b"consent: []\n", b"consent: [claude]\n"),
        (b"consent: [not codex]  # asked\n", b"consent: [not codex, claude]  # asked\n"),
        (
            b"# mine\nconsent:\n  - codex\nagent: repair  # ours\n",
            b"# mine\nconsent: [codex, claude]\nagent: repair  # ours\n",
        ),
        (b"{agent: repair}\n", b"{agent: repair, consent: [claude]}\n"),
    ],
)
def test_the_answer_is_added_and_nothing_else_changes(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    """Comments and order of the file stay."""
    path = tmp_path / "config.yaml"
    path.write_bytes(before)
    record_consent(path, "claude", yes=True)
    assert path.read_bytes() == after
    assert "claude" in parse_config(after, path).consent


def test_a_no_is_kept_too(tmp_path: Path) -> None:
    """A refusal is kept, so that the question is asked once."""
    record_consent(tmp_path / "config.yaml", "claude", yes=False)
    assert (tmp_path / "config.yaml").read_bytes() == b"consent: [not claude]\n"


@pytest.mark.parametrize("before", [b"agent: [\n", b"- a\n", b"agents: 5\n", b"consent: {a: b}\n"])
def test_a_file_that_is_no_config_is_left_alone(tmp_path: Path, before: bytes) -> None:
    """The message names the file and what is wrong in it."""
    path = tmp_path / "config.yaml"
    path.write_bytes(before)
    with pytest.raises(UsageError, match=r"the answer cannot be kept: .*config\.yaml"):
        record_consent(path, "claude", yes=True)
    assert path.read_bytes() == before


def test_each_known_agent_is_in_the_docs_with_its_login() -> None:
    """A person finds every name of the table, and what to do before it works."""
    text = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
    for row in table().values():
        assert f"| `{row.name}` |" in text, row.name
        assert row.login in text, row.name
