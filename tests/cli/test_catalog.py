"""The table of verbs against the modules that hold them."""

from __future__ import annotations

import importlib
import pkgutil

import click
import pytest
import uncaged_cli.verbs
from uncaged_cli.catalog import VERBS, module_of, nearest


def test_every_verb_has_a_module_and_every_module_a_verb() -> None:
    """Each verb of the catalogue has a module, and each module a verb."""
    modules = {
        f"uncaged_cli.verbs.{module.name}"
        for module in pkgutil.iter_modules(uncaged_cli.verbs.__path__)
    }
    assert {module_of(verb) for verb in VERBS} == modules


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_json(verb: str) -> None:
    """Each command describes itself, carries the verb's name and takes --json."""
    command = importlib.import_module(module_of(verb)).command
    assert isinstance(command, click.Command)
    assert command.help
    commands = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    for part in commands:
        assert any("--json" in parameter.opts for parameter in part.params)
    for parameter in command.params:
        assert (
            not isinstance(parameter, click.Option) or parameter.help or parameter.name in ("form",)
        )


def test_a_slip_of_the_pen_finds_its_verb() -> None:
    """The closest words are suggested, and nothing when none is near."""
    assert nearest("thraeds", VERBS) == "; did you mean 'threads' or 'thread' or 'test'?"
    assert nearest("zzzz", VERBS) == ""
