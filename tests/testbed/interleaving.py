"""Interleaving: an action of another process, performed between two calls of the code under
test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def just_before(
    patch: pytest.MonkeyPatch, owner: object, name: str, action: Callable[[], object]
) -> None:
    """Perform *action* once, right before the next call of *owner*'s function *name*."""
    _around(patch, owner, name, before=action)


def just_after(
    patch: pytest.MonkeyPatch, owner: object, name: str, action: Callable[[], object]
) -> None:
    """Perform *action* once, right after the next call of *owner*'s function *name*."""
    _around(patch, owner, name, after=action)


def _around(
    patch: pytest.MonkeyPatch,
    owner: object,
    name: str,
    *,
    before: Callable[[], object] | None = None,
    after: Callable[[], object] | None = None,
) -> None:
    real = getattr(owner, name)
    done: list[bool] = []

    def called(*words: Any, **named: Any) -> Any:
        first = not done
        done.append(True)
        if first and before is not None:
            before()
        result = real(*words, **named)
        if first and after is not None:
            after()
        return result

    patch.setattr(owner, name, called)
