"""How far a run over many items has come, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .output import is_terminal


@contextmanager
def shown_progress() -> Iterator[Callable[[str, int], None]]:
    """Yield a function that shows the number of items of a kind."""
    if not is_terminal(sys.stderr):
        yield lambda _kind, _count: None
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status("…") as shown:
        yield lambda kind, count: shown.update(f"{kind}: {count:,}")
