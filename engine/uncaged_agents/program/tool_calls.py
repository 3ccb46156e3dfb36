"""Calls of tools in the output of a program, by the rules of its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_engine.door.traces import AgentTrace

from .table import CallRule, ProgramRow
from .values import values_at

__all__ = ["ProgramCalls"]

MAX_CALLS = 1_000
MAX_RESULT_CHARACTERS = 1 << 20
SHOWN = ("tool", "file")


class ProgramCalls:
    """Calls of one run, in the order of their begin. A program without rules for calls has those
    that it shows while it works.
    """

    def __init__(self, row: ProgramRow) -> None:
        self._rules = row.calls
        self._calls: dict[str, dict[str, Any]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Add what an event says of calls."""
        for rule in self._rules:
            if all(value in values_at(event, path) for path, value in rule.when.items()):
                for item in values_at(event, rule.each):
                    if isinstance(item, Mapping) and _fits(item, rule):
                        self._add(item, rule)

    def show(self, fields: Mapping[str, object]) -> None:
        """Add a call of which only what is shown is known."""
        if not self._rules and "tool" in fields:
            more = {"file": fields["file"]} if "file" in fields else {}
            self._calls[str(len(self._calls))] = {"tool": fields["tool"], "arguments": more}

    def keep(self, trace: AgentTrace) -> None:
        """Add the calls to the trace of the step."""
        for call in self._calls.values():
            result = call.get("result")
            trace.add(
                str(call.get("tool", "")),
                call.get("arguments", {}),
                None if result is None else _text(result)[:MAX_RESULT_CHARACTERS],
                failed=bool(call.get("error", False)),
            )

    def _add(self, item: Mapping[str, Any], rule: CallRule) -> None:
        found: dict[str, Any] = {}
        for name, path in rule.take.items():
            value = next(values_at(item, path), None)
            outer, _, inner = name.partition(".")
            if value is not None and inner:
                found[outer] = {**found.get(outer, {}), inner: value}
            elif value is not None:
                found[name] = value
        number = str(found.pop("id", len(self._calls)))
        if number in self._calls:
            self._calls[number].update(found)
        elif "tool" in found and len(self._calls) < MAX_CALLS:
            self._calls[number] = found


def _fits(item: Mapping[str, Any], rule: CallRule) -> bool:
    return all(value in values_at(item, path) for path, value in rule.where.items())


def _text(result: object) -> str:
    """Return a result as text; programs may give it as a list of parts."""
    if isinstance(result, list):
        return "\n".join(filter(None, map(_text, result)))
    if isinstance(result, Mapping):
        return str(result.get("text", ""))
    return str(result)
