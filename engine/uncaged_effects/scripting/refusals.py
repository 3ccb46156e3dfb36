"""Messages about refused accesses of a script, with the policy line that would allow each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uncaged_engine.services.sandbox import (
    ANY_ADDRESS,
    NAME_PORT,
    PROCESSES,
    SOCKET_TABLES,
    Refusal,
)

from .spec import declared

if TYPE_CHECKING:
    from uncaged_bundles.limits import ScriptLimits

NETWORK = "network"
"""Entry of ``tolerate`` that means any address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRefusal:
    """Refusal in a script's result. counted: it makes the result unsuccessful."""

    sentence: str
    counted: bool


def reported_refusals(
    refused: Iterable[Refusal], denied: Iterable[tuple[str, str]], limits: ScriptLimits
) -> Iterator[ReportedRefusal]:
    """Yield the refusals of the sandbox and of the proxy.

    Args:
        denied: address and sentence of each refusal of the proxy.
    """
    for refusal in refused:
        tolerated = any(_means(entry, refusal) for entry in limits.tolerated)
        # a path may be any bytes
        sentence = (
            _sentence(refusal, limits).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        )
        yield ReportedRefusal(
            sentence=sentence, counted=not (tolerated or refusal.readable or refusal.system)
        )
    for address, sentence in denied:
        tolerated = any(
            entry in (address, address.rpartition(":")[0], NETWORK) for entry in limits.tolerated
        )
        yield ReportedRefusal(sentence=sentence, counted=not tolerated)


def _means(entry: str, refusal: Refusal) -> bool:
    match refusal.kind:
        case "reach":
            return entry in (refusal.what, refusal.what.rpartition(":")[0], NETWORK)
        case "execute":
            return entry in (refusal.what, os.path.basename(refusal.what))  # noqa: PTH119 - as text
        case _:
            return refusal.what == entry or refusal.what.startswith(f"{entry.rstrip('/')}/")


def _sentence(refusal: Refusal, limits: ScriptLimits) -> str:
    what = refusal.what
    match refusal.kind:
        case "execute":
            return undeclared_command(what, limits)
        case "reach":
            return _unreached(what, limits)
        case "write":
            problem = (
                "may only be read" if refusal.readable else "is outside what the policy allows"
            )
            return f"the path {what!r} {problem}; {declared('write', [*limits.write, what])}"
        case "space":
            return f"the file system of {what!r} is outside what the policy allows; {declared('read', [*limits.read, what])}"
        case _:
            subject = (
                "the list of this machine's processes"
                if what == PROCESSES
                else f"the path {what!r}"
            )
            return f"{subject} is outside what the policy allows; {declared('read', [*limits.read, what])}"


def undeclared_command(what: str, limits: ScriptLimits) -> str:
    """Return the sentence about a command that the policy does not name."""
    line = declared("executables", [*limits.executables, what])
    return f"the command {what!r} is not among the policy's executables; {line}"


def _unreached(what: str, limits: ScriptLimits) -> str:
    if what == SOCKET_TABLES:
        return f"the list of this machine's sockets is outside what the policy allows; {declared('network', 'host')}"
    is_name = what == ANY_ADDRESS or what.endswith(f":{NAME_PORT}")
    goal = "a host" if is_name else what
    if limits.hosts:
        return (
            f"the script tried to reach {goal} past its proxy, the only way out; use a program that knows https_proxy, "
            f"or {declared('network', 'host')}"
        )
    return f"the network is off, and the script tried to reach {goal}; {declared('network', ['the.host.it.needs' if is_name else what])}"
