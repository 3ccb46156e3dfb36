"""What the step loop can ask of whoever executes it is one of these commands, and each says what it is answered with."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.records import dataclass

from ..cells.reply import BundleReply
from ..door.outcomes import Outcome


@dataclass(slots=True)  # not frozen, like all here that each step makes anew: freezing triples what that costs
class Write:
    """Append an open record; answered with the sealed line. flush: nothing goes on before it is on disk."""

    body: bytes
    flush: bool = False


@dataclass(frozen=True, slots=True)
class Flush:
    """Bring what was written to disk."""


@dataclass(frozen=True, slots=True)
class Spill:
    """Move the largest of some fields to a blob; answered with the fields that are left and the note of it."""

    fields: Mapping[str, object]


@dataclass(slots=True)
class Ask:
    """Send the outcome of step *seq* into the bundle; answered with a StepProgress."""

    seq: int
    line: bytes


@dataclass(slots=True)
class StepProgress:
    """How far a thread is after an `Ask`.

    said: what the bundle yields now, or its end. seq: the last finished step; higher than that of the `Ask` if steps were finished on the
    way. outcome: of the effect in *said*, if its intent is on disk and it was performed already.
    """

    said: BundleReply
    seq: int
    outcome: Outcome | None = None


@dataclass(slots=True)
class Perform:
    """Perform an effect; answered with an Outcome. intended_ms: the time of its first intent."""

    seq: int
    kind: str
    body: object
    attempt: int
    intended_ms: int


Command = Write | Flush | Spill | Ask | Perform
