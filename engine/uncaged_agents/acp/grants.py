"""Permissions outside the worktree that a person gave or denied, kept with the agent's session
until the step is done.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

YES = "yes"
ANSWERS = (YES, "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """Permissions of a step. session, title: of the tool call that needs them. asked, granted,
    denied: paths outside the worktree.
    """

    session: str | None = None
    title: str = ""
    asked: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()

    @classmethod
    def of(cls, scratch: Path, key: str, reply: object) -> Grants:
        """Return the permissions of a step with the person's last reply; empty if none was
        requested.
        """
        file = file_of(scratch, key)
        if reply is None or not file.exists():
            return cls()
        fields = json.loads(file.read_text("utf-8"))
        asked, granted, denied = (tuple(fields[name]) for name in ("asked", "granted", "denied"))
        kept = cls(
            session=fields["session"],
            title=fields["title"],
            asked=asked,
            granted=granted,
            denied=denied,
        )
        if reply == YES:
            return replace(kept, granted=(*kept.granted, *kept.asked), asked=())
        return replace(kept, denied=(*kept.denied, *kept.asked), asked=())

    def save(self, scratch: Path, key: str) -> None:
        file_of(scratch, key).write_text(json.dumps(asdict(self)), "utf-8")

    def follow_up(self, reply: object) -> str:
        """Return the message that continues the agent's session."""
        word = "allowed" if reply == YES else "did not allow"
        return f"The person {word} what you asked for: {self.title}. Go on with your task from where you were, and end with the answer."


def file_of(scratch: Path, key: str) -> Path:
    return scratch / f"leave-{key.rpartition('/')[2]}.json"
