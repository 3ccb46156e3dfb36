"""The docs say what is there: every command and option, the life cycle, and every README link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from uncaged_agents.kinds import own_kinds
from uncaged_agents.program.table import table
from uncaged_cli.catalog import VERBS
from uncaged_cli.main import group
from uncaged_engine.state.states import TABLE

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PARTS = ("bundles", "engine", "roles", "templates", "cli")


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in VERBS:
        command = group.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                assert found is not None
                yield f"{name} {inner}", found


def section(name: str) -> str:
    text = (DOCS / "commands.md").read_text("utf-8")
    found = re.search(rf"^#+ {re.escape(name)}$(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/commands.md has no section {name!r}"
    return found[1]


def test_every_command_and_option_is_documented() -> None:
    """A verb without a section, or an option that its section does not name, is a gap in
    docs/commands.md.
    """
    lacking = [
        f"{name} {option}"
        for name, command in commands()
        for parameter in command.params
        if isinstance(parameter, click.Option)
        and parameter.name != "as_json"
        and not parameter.hidden
        for option in parameter.opts
        if f"`{option}" not in section(name) and f", {option}" not in section(name)
    ]
    assert lacking == []


def test_advice_names_what_there_is() -> None:
    """A command or an agent that a message or a page tells people to use is one that they can
    use.
    """
    places = [
        *ROOT.glob("docs/*.md"),
        ROOT / "README.md",
        *(path for part in PARTS for path in (ROOT / part).rglob("*.py")),
    ]
    texts = {path: path.read_text("utf-8") for path in places}
    verbs = {
        (path, word)
        for path, text in texts.items()
        for word in re.findall(r"[`']uncaged-workflow ([a-z][a-z-]*)", text)
    }
    assert {(path, word) for path, word in verbs if word not in VERBS} == set()
    agents = {
        (path, word)
        for path, text in texts.items()
        for word in re.findall(r"--agent (?:[a-z]+=)?([a-z][a-z-]*)", text)
    }
    # "names": the verb
    assert {
        (path, word) for path, word in agents if word not in {*own_kinds(), *table(), "names"}
    } == set()
    assert any(path.name == "planner.py" for path, _word in agents)


def test_the_life_cycle_in_the_docs_is_the_engines() -> None:
    """docs/threads.md shows the very table that the engine uses."""
    text = (DOCS / "threads.md").read_text("utf-8")
    shown = (
        text[text.index("<!-- states -->") : text.index("<!-- /states -->")]
        .strip()
        .splitlines()[1:]
    )
    events = [cell.strip() for cell in shown[0].strip("|").split("|")][1:]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in shown[2:] if line]
    assert {row[0]: dict(zip(events, row[1:], strict=True)) for row in rows} == {
        state: {event: {str(one): to for one, to in row.items()}.get(event, "") for event in events}
        for state, row in TABLE.items()
    }


@pytest.mark.parametrize(
    "path", sorted([ROOT / "README.md", *DOCS.rglob("*.md")]), ids=lambda path: path.name
)
def test_links_lead_somewhere(path: Path) -> None:
    """A relative link in the docs names a file that is there."""
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text("utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []
