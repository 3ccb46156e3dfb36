"""Table of all that the effect can do: operations on a page, lookups, and questions."""

from __future__ import annotations

from collections.abc import Mapping

from ..lookup.requests import LOOKUPS
from ..operations import OPERATIONS, Operation
from ..questions.requests import QUESTIONS

__all__ = ["EFFECTS", "operation_named"]

EFFECTS: Mapping[str, type[Operation]] = {**OPERATIONS, **LOOKUPS, **QUESTIONS}
"""All of them by name."""


def operation_named(body: object) -> type[Operation] | None:
    """Return the operation that a body names; None if there is no such one."""
    return EFFECTS.get(str(body.get("do"))) if isinstance(body, Mapping) else None
