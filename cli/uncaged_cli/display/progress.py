"""One-line progress of an effect in flight: usage, tool and file, last message."""

from __future__ import annotations

import re
from collections.abc import Mapping

from uncaged_bundles.clean import clean_line

from .costs import money

SEPARATOR = " · "
MESSAGE_KEYS = ("message", "text", "line")
"""Keys under which handlers report a message; the first one present is used."""

FENCE = re.compile(r"^```\w*$")


class EffectProgress:
    """The progress of the effect in flight. Each report adds fields or replaces earlier values."""

    def __init__(self) -> None:
        self._fields: dict[str, object] = {}

    def add(self, report: Mapping[str, object]) -> None:
        """Merge a report into the progress; a new tool without a file clears the file."""
        message = next((report[name] for name in MESSAGE_KEYS if report.get(name)), None)
        self._fields.update(
            {name: report[name] for name in ("tool", "file", "usage") if report.get(name)}
        )
        if report.get("tool") and not report.get("file"):
            self._fields.pop("file", None)
        if message is not None:
            self._fields["message"] = message

    @property
    def work(self) -> str:
        """Return tool, file and last message."""
        tool, file = (clean_line(str(self._fields.get(name, ""))) for name in ("tool", "file"))
        action = tool if tool.endswith(file) else f"{tool} {file}".strip()
        message = FENCE.sub("", clean_line(str(self._fields.get("message", ""))))
        return SEPARATOR.join(part for part in (action, message) if part)

    @property
    def line(self) -> str:
        """Return usage, tool, file and last message; a narrow terminal cuts the message first."""
        return SEPARATOR.join(
            part for part in (spell_usage(self._fields.get("usage")), self.work) if part
        )


def spell_usage(usage: object) -> str:
    """Format usage as ``1,230 tokens, $0.012``; empty if nothing was reported."""
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
