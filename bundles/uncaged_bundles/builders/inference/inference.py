"""Inference of a script's parameters, command line and programs from its text, for a person to
confirm.

Nothing is run: ``param()`` in PowerShell, ``argparse``, ``click`` and ``sys.argv`` in Python,
``getopts``, ``$1`` and ``$PARAM_NAME`` in bash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from uncaged_bundles.errors import BundleError

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
_COMMANDS = {
    "bash": infer_bash.commands,
    "python": infer_python.commands,
    "powershell": infer_powershell.commands,
}

_HINT = "list script.arguments, which define the command line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """parameters: as a recipe lists them. arguments: the command line that passes them."""

    parameters: tuple[dict[str, object], ...]
    arguments: tuple[object, ...]


def infer_parameters(language: str, text: str) -> Inferred:
    """Return the parameters that a script seems to take."""
    guesses = _READERS[language](text)
    return Inferred(
        parameters=tuple(guess.fields() for guess in guesses), arguments=_command_line(guesses)
    )


def infer_commands(language: str, text: str) -> tuple[str, ...]:
    """Return the programs (for PowerShell: cmdlets) that a script seems to start, sorted."""
    return tuple(sorted(_COMMANDS[language](text)))


def infer_arguments(
    language: str, text: str, parameters: Mapping[str, object]
) -> tuple[object, ...]:
    """Return the command line that passes declared parameters to a script.

    An option gets the parameter of its name. The n-th place gets the parameter that has the name of
    the script's variable for it, else the n-th one.

    Raises:
        BundleError: no parameter fits a place that the script needs, or more than one does.
    """
    properties = parameters.get("properties", {})
    declared = [str(name) for name in properties] if isinstance(properties, Mapping) else []
    guesses = _READERS[language](text)
    named = {name.lower(): name for name in declared}
    options = [
        replace(guess, name=named[guess.name.lower()])
        for guess in guesses
        if guess.flag and guess.name.lower() in named
    ]
    from_environment = {
        guess.name.lower() for guess in guesses if not guess.flag and guess.place is None
    }
    unread = [
        name
        for name in declared
        if name.lower() not in from_environment | {option.name.lower() for option in options}
    ]
    places = {guess.place: guess for guess in guesses if guess.place is not None}
    bound = _bind_places(places, declared, unread)
    if language == "bash" and infer_bash.reads_all_arguments(text):
        bound = [*bound, *(name for name in unread if name not in bound)]
    _refuse_gaps(bound, parameters)
    return (*_command_line(options), *({"param": name} for name in bound))


def _bind_places(
    places: Mapping[int, Guess], declared: Sequence[str], unread: Sequence[str]
) -> list[str]:
    """Return the parameter of each place, place 1 first."""
    named = {name.lower(): name for name in declared}
    bound: list[str] = []
    for place in range(1, max(places, default=0) + 1):
        guess = places[place]
        by_order = next(iter(declared[place - 1 : place]), None)
        by_order_unread = next(iter(unread[place - 1 : place]), None)
        name = named.get(guess.name.lower(), by_order)
        if name is None and not guess.required:
            return bound
        if name is None:
            raise BundleError(
                f"the script reads ${place}, and there is no parameter for it; declare one, or list script.arguments"
            )
        if name in bound:
            raise BundleError(
                f"the script reads ${place}, and its parameter would be {name!r}, as that of a place before it; {_HINT}"
            )
        if guess.name.lower() not in named and by_order_unread not in (by_order, None):
            raise BundleError(
                f"the script reads ${place}, which may be {by_order!r} (by the order of the parameters) or {by_order_unread!r} "
                f"(which it does not read by name); {_HINT}"
            )
        bound.append(name)
    return bound


def _refuse_gaps(bound: Sequence[str], parameters: Mapping[str, object]) -> None:
    """Refuse an optional parameter without a default before another one: without it, later places
    would shift.
    """
    properties, required = parameters.get("properties", {}), parameters.get("required", [])
    for name, after in pairwise(bound):
        schema = properties.get(name) if isinstance(properties, Mapping) else None
        if name not in (required if isinstance(required, list) else []) and not (
            isinstance(schema, Mapping) and "default" in schema
        ):
            raise BundleError(
                f"the parameter {name!r} may be absent and comes before {after!r} on the command line; give it a default"
            )


def _command_line(guesses: Sequence[Guess]) -> tuple[object, ...]:
    """Return the command line: flags first, then places."""
    flags = [
        {"param": guess.name, "flag": guess.flag, **({"switch": True} if guess.switch else {})}
        for guess in guesses
        if guess.flag
    ]
    placed = sorted(
        (guess for guess in guesses if guess.place is not None), key=lambda guess: guess.place or 0
    )
    return (*flags, *({"param": guess.name} for guess in placed))
