"""Commands of the step loop to its driver, each with the type of its answer."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.records import dataclass

from ..cells.reply import BundleReply
from ..door.outcomes import Outcome


# not frozen, like all here that each step makes anew: freezing triples what that costs
@dataclass(slots=True)
class Write:
    """Append an open record; the answer is the sealed line. flush: bring it to disk before the
    answer.
    """

    body: bytes
    flush: bool = False


@dataclass(frozen=True, slots=True)
class Flush:
    """Bring everything that was appended to disk."""


@dataclass(frozen=True, slots=True)
class Spill:
    """Move the largest of some fields to a blob; the answer is the other fields and a note of the
    blob.
    """

    fields: Mapping[str, object]


@dataclass(slots=True)
class Ask:
    """Send the outcome of step *seq* to the bundle; the answer is a StepProgress."""

    seq: int
    line: bytes


@dataclass(slots=True)
class StepProgress:
    """How far a thread is after an `Ask`.

    reply: the bundle's next effect, or its end. seq: the last finished step; higher than that of
    the `Ask` if the fast lane finished more.
    outcome: of the effect in *reply*, if its intent is on disk and it has been performed already.
    """

    reply: BundleReply
    seq: int
    outcome: Outcome | None = None


@dataclass(slots=True)
class Perform:
    """Perform an effect; the answer is an Outcome. intended_ms: the time of its first intent."""

    seq: int
    kind: str
    body: object
    attempt: int
    intended_ms: int


Command = Write | Flush | Spill | Ask | Perform
