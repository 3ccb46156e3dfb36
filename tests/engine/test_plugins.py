"""Names in registries."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
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
    """Our own handlers and agents are found without a search of installed distributions."""
    assert isinstance(handlers.handler_for("null"), NullHandler)
    assert handlers.handler_for("null") is handlers.handler_for("null")
    assert agents.factory_of("command") is CommandAgent
    assert agents.factory_of("scripted") is ScriptedAgent
    assert {"null", "role"} <= set(handlers.kinds())
    assert {"command", "scripted", "repair"} <= set(agents.kinds())


@pytest.mark.parametrize("reference", [*handlers.BUILT_IN.values(), *agents.BUILT_IN.values()])
def test_every_entry_of_our_tables_exists(reference: str) -> None:
    """A table entry that leads nowhere would be found by a person, at run time."""
    assert callable(plugins.find("x", built_in={"x": reference}, group="none"))


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    """The message names the group, so that an author of a distribution knows where to register."""
    with pytest.raises(NotFoundError, match=r"'comand' in uncaged_workflow\.agents \(known: command\)"):
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
    with pytest.raises(EnvironmentLacks, match=r"'broken' cannot be loaded: \w+Error in broken_agent:make: .*mend or uninstall it"):
        plugins.loaded(point)
