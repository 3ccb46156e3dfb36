"""What an effect says of itself while it is performed is one line: what it has used up, its tool
and file, and its last words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from uncaged_bundles.clean import clean_line

from .costs import money

SEPARATOR = " · "
WORDS = ("message", "text", "line")
"""Under these names handlers report words, the first that is there counts."""

FENCE = re.compile(r"^```\w*$")


class Doing:
    """What is known of the effect in flight; each report adds to it, or takes the place of what it
    said before.
    """

    def __init__(self) -> None:
        self._known: dict[str, object] = {}

    def hear(self, report: Mapping[str, object]) -> None:
        words = next((report[name] for name in WORDS if report.get(name)), None)
        self._known.update(
            {name: report[name] for name in ("tool", "file", "usage") if report.get(name)}
        )
        if report.get("tool") and not report.get("file"):
            self._known.pop("file", None)
        if words is not None:
            self._known["words"] = words

    @property
    def work(self) -> str:
        """Tool, file and last words."""
        tool, file = (clean_line(str(self._known.get(name, ""))) for name in ("tool", "file"))
        handling = tool if tool.endswith(file) else f"{tool} {file}".strip()
        words = FENCE.sub("", clean_line(str(self._known.get("words", ""))))
        return SEPARATOR.join(part for part in (handling, words) if part)

    @property
    def line(self) -> str:
        """All of it; what is cut off at the end of a terminal's line is the words."""
        return SEPARATOR.join(
            part for part in (spell_usage(self._known.get("usage")), self.work) if part
        )


def spell_usage(usage: object) -> str:
    """``1,230 tokens, $0.012``; nothing where nothing is known."""
    if not isinstance(usage, Mapping):
        return ""
    tokens = sum(
        value
        for name in ("inputTokens", "outputTokens")
        if isinstance(value := usage.get(name), int | float)
    )
    cost = usage.get("cost")
    price = money(
        cost if isinstance(cost, int | float) else 0, unpriced=bool(usage.get("unpriced"))
    )
    return ", ".join(part for part in (f"{tokens:,.0f} tokens" if tokens else "", price) if part)
