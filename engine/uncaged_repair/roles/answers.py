"""Texts of the repair's answers: the program's name in the first line, the structured block at the
end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

FIRST_LINE = "built-in repair: no model; it searches small edits until the repository's own failing test passes"


def answer(lines: Sequence[str], meta: Mapping[str, object]) -> str:
    """Return the text of an answer. Fences in *lines* are replaced, so that the block at the end is
    the only one.
    """
    body = "\n".join(line.replace("```", "'''").replace("~~~", "'''") for line in lines)
    return (
        f"{FIRST_LINE}\n\n{body}\n\n```json\n{json.dumps(meta, indent=1, ensure_ascii=True)}\n```\n"
    )


def list_names(names: Sequence[str], shown: int = 5) -> str:
    """Return *names* in one line: the first *shown* and the number of the others."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def plural(number: int, word: str) -> str:
    """Return ``1 test``, ``2 tests``."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
