"""What a person was asked to allow, and what they said, is kept beside the session in which the agent asked, until the step is done."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

YES = "yes"
ANSWERS = (YES, "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """session: where it was asked. title: what for. asked, granted, denied: paths outside the worktree."""

    session: str | None = None
    title: str = ""
    asked: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()

    @classmethod
    def of(cls, scratch: Path, key: str, said: object) -> Grants:
        """What stands for a step, with what a person said last; nothing if nobody was asked."""
        file = file_of(scratch, key)
        if said is None or not file.exists():
            return cls()
        fields = json.loads(file.read_text("utf-8"))
        asked, granted, denied = (tuple(fields[name]) for name in ("asked", "granted", "denied"))
        kept = cls(session=fields["session"], title=fields["title"], asked=asked, granted=granted, denied=denied)
        if said == YES:
            return replace(kept, granted=(*kept.granted, *kept.asked), asked=())
        return replace(kept, denied=(*kept.denied, *kept.asked), asked=())

    def keep(self, scratch: Path, key: str) -> None:
        file_of(scratch, key).write_text(json.dumps(asdict(self)), "utf-8")

    def follow_up(self, said: object) -> str:
        """What the agent hears of it."""
        word = "allowed" if said == YES else "did not allow"
        return f"The person {word} what you asked for: {self.title}. Go on with your task from where you were, and end with the answer."


def file_of(scratch: Path, key: str) -> Path:
    return scratch / f"leave-{key.rpartition('/')[2]}.json"
