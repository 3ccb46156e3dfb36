"""Nobody is granted anything that a person did not see in words and say yes to."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click
from uncaged_bundles.errors import RefusedError

from .screen import is_terminal, note


def asker(what: str, *, accept: bool) -> Callable[[tuple[str, ...]], bool]:
    """Return the function that shows what *what* asks anew and gets one yes.

    A terminal is asked; ``--accept`` says yes beforehand; anything else is refused with the option's name.
    """

    def ask(sentences: tuple[str, ...]) -> bool:
        note(f"{what} asks to be allowed:")
        for sentence in sentences:
            note(f"  - {sentence}")
        if accept:
            return True
        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            raise RefusedError(f"{what} is not granted: nobody said yes to the above; say it with --accept")
        if not click.confirm("Grant this?", default=False, err=True):
            raise RefusedError(f"{what} is not granted: the answer was no; nothing was changed")
        return True

    return ask
