"""Docs that agree with the code: commands and options, the life cycle, packages, tests, links."""

from __future__ import annotations

import inspect
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
        yield from within(name, command)


def within(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command, and those below it, with their whole names."""
    yield name, command
    if isinstance(command, click.Group):
        for inner, found in command.commands.items():
            yield from within(f"{name} {inner}", found)


def section(name: str) -> str:
    text = (DOCS / "commands.md").read_text("utf-8")
    found = re.search(rf"^#+ {re.escape(name)}$(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/commands.md has no section {name!r}"
    return found[1]


def options(command: click.Command) -> Iterator[click.Option]:
    """Yield the options of a command that the docs describe."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name != "as_json":
            yield parameter


def test_every_command_and_option_is_documented() -> None:
    """A verb without a section, or an option without a row that has its help text, is a gap in
    docs/commands.md.
    """
    lacking = [
        f"{name} {option.opts}"
        for name, command in commands()
        for option in options(command)
        if not re.search(
            rf"^\| `{re.escape(', '.join(option.opts))}\b.*` \| {re.escape(str(option.help))} \|$",
            section(name),
            re.MULTILINE,
        )
    ]
    assert lacking == []


def test_the_docs_and_help_describe_a_command_in_the_same_words() -> None:
    """Each paragraph of a verb's help, but for its examples, is in its section of
    docs/commands.md.
    """
    lacking = {
        name: paragraph
        for name, command in commands()
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n")
        if "\b" not in paragraph
        and " ".join(paragraph.split()) not in " ".join(section(name).split())
    }
    assert lacking == {}


def test_advice_names_what_there_is() -> None:
    """A command or an agent that a message or a page tells people to use is one that they can
    use.
    """
    places = [
        *DOCS.rglob("*.md"),
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


def test_an_anchor_in_a_link_names_a_heading() -> None:
    """A link to a section of a page leads to a heading of that page."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    links = [
        (page, (page.parent / target).resolve() if target else page, anchor)
        for page in pages
        for target, anchor in re.findall(
            r"\]\((?!https?:)([^)#\s]*)#([^)]+)\)", page.read_text("utf-8")
        )
    ]
    assert [link for link in links if link[2] not in anchors(link[1])] == []
    assert len(links) > 10


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^a-z0-9 _-]", "", heading.lower()).strip().replace(" ", "-")
        for heading in headings
    }


def test_a_test_that_a_page_names_exists() -> None:
    """A promise in the docs is tied to a test that is there, by its file or its name."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "AGENTS.md", *DOCS.rglob("*.md")]
    named = {
        word for page in pages for word in re.findall(r"`(test[\w/.]*)`", page.read_text("utf-8"))
    }
    files = {word for word in named if "/" in word}
    tests = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    functions = set(re.findall(r"^def (test_\w+)\(", "\n".join(tests), re.MULTILINE))
    assert {word for word in files if not (ROOT / word).exists()} == set()
    assert {word for word in named - files if word.startswith("test_")} - functions == set()
    assert "test_the_worker_dies_between_effects" in named


def test_the_table_of_layers_names_each_entry_of_the_core() -> None:
    """docs/architecture.md describes every module and folder of the core, and each path in it
    exists.
    """
    text = (DOCS / "architecture.md").read_text("utf-8")
    core = ROOT / "engine" / "uncaged_engine"
    entries = {
        path.name + "/" * path.is_dir()
        for path in core.iterdir()
        if path.name not in ("__init__.py", "__pycache__", "py.typed")
    }
    table = text[text.index("### Layers of the core") : text.index("## Life of a thread")]
    assert {entry for entry in entries if f"`{entry}`" not in table} == set()
    packages = (ROOT / "bundles" / "uncaged_bundles", ROOT / "cli" / "uncaged_cli")
    places = (core, ROOT, *packages)
    paths = set(re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", text))
    assert {
        path
        for path in paths
        if not any((place / path).exists() or (place / f"{path}.py").exists() for place in places)
    } == set()
