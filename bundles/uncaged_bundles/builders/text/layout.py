"""Layout of a bundle's parts, as a formatter would have it, so that a person can read and compare
bundles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

from ..carrying.carry import Carrier
from ..carrying.imports import write_imports
from .literal import write_constant

_BLOCK = re.compile(r"^(?:def |class |async def |@)", re.MULTILINE)


def spaced(statements: Sequence[str]) -> str:
    """Join top-level statements: two empty lines around a function or a class, one before a
    comment, none between plain ones.
    """
    text = statements[0]
    for before, statement in pairwise(statements):
        wide = _BLOCK.search(before) or _BLOCK.search(statement)
        text += ("\n\n\n" if wide else "\n\n" if statement.startswith("#") else "\n") + statement
    return text


def write_driven(
    head: str, descriptor: Mapping[str, object], module: str, names: Sequence[str], rest: str
) -> bytes:
    """Return the text of a bundle whose only code is our driver and *rest*.

    Args:
        head: the first line, a comment.
        module: the loaded module from which *names* are carried.
        rest: what follows the carried code, ``run`` at its end.
    """
    imports, code = _carried(module, tuple(names))
    parts = [
        head,
        *([imports] if imports else []),
        write_constant("descriptor", descriptor),
        f"# Carried from uncaged-workflow: the driver.\n\n\n{code}",
    ]
    return ("\n\n".join(parts) + "\n\n\n" + rest).encode()


@cache
def _carried(module: str, names: tuple[str, ...]) -> tuple[str, str]:
    """Return the import lines and the code of *names*; equal for every bundle of a process."""
    carrier = Carrier(reserved=("descriptor", "run", "options"))
    for name in names:
        carrier.carry(module, name)
    code = [text for _, text in carrier.code()]
    return "\n".join(write_imports(carrier.imports())), spaced(code)
