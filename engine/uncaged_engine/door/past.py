"""Effects of a journal, checked against a policy without performing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncaged_bundles.policy import Policy
from uncaged_bundles.records import dataclass
from uncaged_bundles.validation.validate import Bundle

__all__ = ["PastEffect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEffect:
    """An effect that was asked for, and a bundle with the policy that it is checked against.

    body: without the keys of any effect. outcome: its answer; None if it had none, or an error.
    before: the policy that it was performed under. calls: what its agent did, if it has a trace.
    """

    kind: str
    body: object
    outcome: object
    bundle: Bundle
    before: Policy
    calls: Sequence[Mapping[str, object]] = ()

    @property
    def limits(self) -> Mapping[str, object]:
        """Return the limits of its kind in the policy that it is checked against."""
        return self.bundle.descriptor.policy.limits.get(self.kind, {})

    @property
    def former_limits(self) -> Mapping[str, object]:
        """Return the limits of its kind that it was performed under."""
        return self.before.limits.get(self.kind, {})
