"""The table of verbs against the modules that hold them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

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
    for part in _leaves(command):
        is_other_verb = part.context_settings.get(
            "ignore_unknown_options"
        )  # its options are those of that verb
        assert is_other_verb or any("--json" in one.opts for one in part.params), part.name
    for parameter in command.params:
        assert (
            not isinstance(parameter, click.Option) or parameter.help or parameter.name in ("form",)
        )


def _leaves(command: click.Command) -> Iterator[click.Command]:
    """Yield the commands of a group and of those in it; else the command itself."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _leaves(inner)
    else:
        yield command


def test_a_slip_of_the_pen_finds_its_verb() -> None:
    """The closest words are suggested, and nothing when none is near."""
    assert nearest("thraeds", VERBS) == "; did you mean 'threads' or 'thread' or 'test'?"
    assert nearest("zzzz", VERBS) == ""
