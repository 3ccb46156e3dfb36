"""What a policy may set for the effect `browser`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from uncaged_bundles import shapes
from uncaged_bundles.limits import NO_SECRETS, FetchLimits, Limits, Texts
from uncaged_bundles.records import dataclass

__all__ = ["BROWSER", "BrowserLimits"]

BROWSER = "browser"
"""What a worker with a browser offers."""

Profile = Literal["fresh", "kept"]
OPEN_TABS = "it sees and uses the open tabs and the logins of your browser session"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserLimits(Limits):
    """hosts: where its pages may be, and what they may load; None is any public host. private: of
    this machine and its network, too. url_patterns: narrow the addresses of its tabs. secrets: by
    name, the hosts whose fields may get each. profile: ``kept`` is the browser session's own
    context with its open tabs.
    """

    meaning = "use a web browser"
    hosts: Texts = None
    private: bool = False
    url_patterns: Annotated[Sequence[str], shapes.texts, "urlPatterns"] = ()
    secrets: Mapping[str, list[str]] = NO_SECRETS
    profile: Annotated[Profile, shapes.one_of("fresh", "kept")] = "fresh"

    @classmethod
    def unset(cls, limits: Mapping[str, object]) -> Mapping[str, object]:
        """Say which hosts may be reached when none are named, as `fetch` does."""
        return FetchLimits.unset(limits)

    @classmethod
    def first_sentence(cls, limits: Mapping[str, object]) -> str:
        return f"; {OPEN_TABS}" if limits.get("profile") == "kept" else ""

    @classmethod
    def widened(cls, before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
        """Yield a sentence when a bundle gets the browser session's own tabs."""
        if after.get("profile") == "kept" and before.get("profile") != "kept":
            yield OPEN_TABS

    @classmethod
    def needs(cls, limits: Mapping[str, object]) -> frozenset[str]:
        del limits
        return frozenset({BROWSER})

    @classmethod
    def of_one_machine(cls, limits: Mapping[str, object]) -> str:
        """Name the session of the kept profile."""
        if limits.get("profile") != "kept":
            return ""
        return "the tabs and logins of one machine's browser session"
