"""Names in registries."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest
from uncaged_agents import kinds as agents
from uncaged_agents.command import CommandAgent
from uncaged_agents.scripted import ScriptedAgent
from uncaged_bundles.errors import EnvironmentLacks, NotFoundError
from uncaged_effects.null import NullHandler
from uncaged_engine import effect_kinds as handlers
from uncaged_engine import plugins


def test_known_names_lead_to_their_objects() -> None:
    """Handlers and agents of this distribution are found by their names."""
    assert isinstance(handlers.handler_for("null"), NullHandler)
    assert handlers.handler_for("null") is handlers.handler_for("null")
    assert agents.factory_of("command") is CommandAgent
    assert agents.factory_of("scripted") is ScriptedAgent
    assert {"null", "role"} <= set(handlers.kinds())
    assert {"command", "scripted", "repair"} <= set(agents.kinds())


@pytest.mark.parametrize(
    ("group", "name"),
    [
        (group, name)
        for group in (plugins.EFFECTS, plugins.PREPARATIONS, plugins.AGENTS)
        for name in plugins.ours(group)
    ],
)
def test_every_entry_of_ours_leads_to_an_object(group: str, name: str) -> None:
    """An entry that leads nowhere would be found by a person, at run time."""
    assert callable(plugins.find(name, group=group))


def test_our_entries_are_those_of_the_installed_metadata() -> None:
    """The short way to our own entry points and the standard library's find the same ones."""
    for group in (plugins.EFFECTS, plugins.PREPARATIONS, plugins.AGENTS):
        assert plugins.ours(group) == {
            point.name: point.value
            for point in entry_points(group=group)
            if point.dist is not None and point.dist.name == plugins.OURS
        }


def test_names_of_a_package_that_is_not_installed_are_not_registered(tmp_path: Path) -> None:
    """A process that cannot find the package of the repair knows no such agent, and still all
    others.
    """
    code = (
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, *more: None if name == 'uncaged_repair' else find(name, *more)\n"
        "from uncaged_agents.kinds import kinds\n"
        "print(*kinds())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == [kind for kind in agents.kinds() if kind != "repair"]


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    """The message names the group, so that an author of a distribution knows where to register."""
    with pytest.raises(
        NotFoundError, match=r"'comand' in uncaged_workflow\.agents \(known: command\)"
    ):
        agents.factory_of("comand")
    with pytest.raises(NotFoundError, match=r"'zzz' in uncaged_workflow\.effects \(known: .*null"):
        handlers.handler_for("zzz")


@pytest.mark.parametrize("text", ["word = '", "import nowhere_at_all", "1 + ''", "other = 1"])
def test_what_another_distribution_registers_broken_is_told_as_its_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """With its name, the place, and what Python says; it is no bug of ours."""
    (tmp_path / "broken_agent.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_agent", raising=False)
    point = EntryPoint(name="broken", value="broken_agent:make", group="uncaged_workflow.agents")
    with pytest.raises(
        EnvironmentLacks,
        match=r"'broken' cannot be loaded: \w+Error in broken_agent:make: .*repair or uninstall it",
    ):
        plugins.loaded(point)


def test_the_state_of_an_installation_is_that_of_a_script_and_of_a_module(tmp_path: Path) -> None:
    """The command, which is a script, and `python -m` of one installation see the same digests;
    one more directory for packages is another installation.
    """
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    program = scripts / "program.py"
    program.write_text("from uncaged_engine.plugins import installation\nprint(*installation())\n")

    def digests(*arguments: str, directory: Path, packages: Path | str = "") -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            check=True,
            cwd=directory,
            env={**os.environ, "PYTHONPATH": str(packages)},
        )
        return done.stdout

    script = digests(str(program), directory=tmp_path)
    assert script == digests("-m", "program", directory=scripts)
    assert script == digests("-c", program.read_text(), directory=tmp_path)
    assert script != digests("-c", program.read_text(), directory=tmp_path, packages=scripts)
