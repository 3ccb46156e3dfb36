"""What a script takes and needs is guessed by the way it is written, for a person to confirm.

Guesses come from the text alone, nothing is run: ``param()`` in PowerShell, ``argparse``, ``click`` and ``sys.argv`` in Python,
``getopts``, ``$1`` and ``$PARAM_NAME`` in bash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import bash as infer_bash
from . import powershell as infer_powershell
from . import python as infer_python
from .guess import Guess

__all__ = ["Guess", "Inferred", "infer_arguments", "infer_commands", "infer_parameters"]

_READERS = {
    "bash": infer_bash.parameters,
    "python": infer_python.parameters,
    "powershell": infer_powershell.parameters,
}
_COMMANDS = {"bash": infer_bash.commands, "python": infer_python.commands, "powershell": infer_powershell.commands}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """parameters: as a recipe lists them. arguments: the command line that hands them over."""

    parameters: tuple[dict[str, object], ...]
    arguments: tuple[object, ...]


def infer_parameters(language: str, text: str) -> Inferred:
    """Return the parameters that a script seems to take."""
    guesses = _READERS[language](text)
    return Inferred(parameters=tuple(guess.fields() for guess in guesses), arguments=_command_line(guesses))


def infer_commands(language: str, text: str) -> tuple[str, ...]:
    """Return the programs (for PowerShell: cmdlets) that a script seems to start, sorted."""
    return tuple(sorted(_COMMANDS[language](text)))


def infer_arguments(language: str, text: str, parameters: Mapping[str, object]) -> tuple[object, ...]:
    """Return the command line for declared parameters: those of them that the script seems to read from it."""
    properties = parameters.get("properties", {})
    declared = {str(name).lower(): str(name) for name in properties} if isinstance(properties, Mapping) else {}
    guesses = [guess for guess in _READERS[language](text) if guess.name.lower() in declared]
    found: list[object] = []
    for part in _command_line(guesses):
        found.append({**part, "param": declared[str(part["param"]).lower()]} if isinstance(part, dict) else part)
    return tuple(found)


def _command_line(guesses: Sequence[Guess]) -> tuple[object, ...]:
    """Flags first, then what has a place of its own."""
    flags = [{"param": guess.name, "flag": guess.flag, **({"switch": True} if guess.switch else {})} for guess in guesses if guess.flag]
    placed = sorted((guess for guess in guesses if guess.place is not None), key=lambda guess: guess.place or 0)
    return (*flags, *({"param": guess.name} for guess in placed))
