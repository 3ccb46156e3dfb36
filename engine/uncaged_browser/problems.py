"""Errors of browser operations, as a bundle, a person and another process get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from uncaged_bundles.clean import encodable

__all__ = ["BrowserProblem", "ProblemKind"]

ProblemKind = Literal[
    "not-found",
    "ambiguous",
    "timeout",
    "blocked",
    "navigation",
    "crashed",
    "closed",
    "unsupported",
    "refused",
]
"""not-found, ambiguous: an element. blocked: by the scope or the policy. navigation: the page could
not be loaded. crashed: the page or the browser. closed: the tab or the context is gone. refused:
the page did not accept the operation, such as a click on a disabled button.
"""
KINDS: frozenset[str] = frozenset(get_args(ProblemKind))
MAX_MESSAGE_CHARACTERS = 2_000


class BrowserProblem(Exception):
    """An operation failed. candidates: descriptions of the elements that an ambiguous target
    matched.
    """

    def __init__(self, kind: ProblemKind, message: str, *, candidates: Sequence[str] = ()) -> None:
        super().__init__(encodable(message[:MAX_MESSAGE_CHARACTERS]))  # it may quote a page
        self.kind: ProblemKind = kind
        self.candidates = tuple(map(encodable, candidates))

    def document(self) -> dict[str, object]:
        """Return the error as JSON data, as an outcome has it."""
        return {
            "kind": self.kind,
            "message": str(self),
            **({"candidates": list(self.candidates)} if self.candidates else {}),
        }

    @classmethod
    def of(cls, document: Mapping[str, object]) -> BrowserProblem:
        """Return the error that another process sent."""
        kind = document.get("kind")
        candidates = document.get("candidates")
        return cls(
            kind if kind in KINDS else "crashed",  # type: ignore[arg-type]
            str(document.get("message", "the browser session gave no reason")),
            candidates=[str(one) for one in candidates] if isinstance(candidates, list) else (),
        )
