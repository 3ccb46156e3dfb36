"""Feedback of the person on a request, as the log keeps it."""

from __future__ import annotations

from typing import Literal

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass

from .requests import check_text

MAX_COMMENT_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """The person's opinion of a request."""

    rating: Literal["good", "bad"]
    comment: str = ""

    def __post_init__(self) -> None:
        if len(self.comment) > MAX_COMMENT_CHARACTERS:
            raise UsageError(f"a comment has at most {MAX_COMMENT_CHARACTERS:,} characters")
        check_text(self.comment)

    def document(self) -> dict[str, object]:
        """Return the feedback as JSON."""
        return {"rating": self.rating, **({"comment": self.comment} if self.comment else {})}

    @classmethod
    def read(cls, value: object) -> Feedback:
        """Check what `document` returns.

        Raises:
            UsageError: it has another form.
        """
        match value:
            case {"rating": "good" | "bad" as rating, **rest} if not rest.keys() - {"comment"}:
                comment = rest.get("comment", "")
                if isinstance(comment, str):
                    return cls(rating=rating, comment=comment)
            case _:
                pass
        raise UsageError('feedback is {"rating": "good" or "bad", "comment"}')
