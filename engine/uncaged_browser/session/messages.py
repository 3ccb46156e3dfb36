"""Messages between a browser session and its clients: one JSON object per line.

A request has ``op`` and its fields; the reply is ``{"value": …}``, ``{"problem": {…}}`` for a
failed operation, ``{"missing": NAME}`` for one in a context that is not open, or ``{"error": {…}}``
for an error of the command. The replies of one connection
come in the order of its requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass

from ..problems import BrowserProblem
from ..scope import BrowserScope

__all__ = ["KEPT", "MAX_LINE_BYTES", "ContextSpec", "MissingContext"]

MAX_LINE_BYTES = 64 << 20
KEPT = "kept"
"""Name of the context that is the session's own: its tabs and cookies stay."""


class MissingContext(BrowserProblem):
    """The session has no context of a name; nothing was performed."""

    def __init__(self, name: str) -> None:
        super().__init__("closed", f"the session has no context {name}; open it first")
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSpec:
    """A context that a client asks for. name: `KEPT`, or a thread's id. hosts, private: what its
    pages may reach, as a policy says it; None is any public host. state: cookies and storage to
    begin with, as Playwright writes them. recorded: what is done in it is noted. temporary: it ends
    with the client's connection, unless the client keeps it. proof: it is temporary, and guarded.
    """

    name: str
    hosts: tuple[str, ...] | None = None
    private: bool = False
    patterns: tuple[str, ...] = ()
    state: Mapping[str, Any] | None = None
    temporary: bool = False
    proof: bool = False
    recorded: bool = False

    @property
    def scope(self) -> BrowserScope:
        """Return where its tabs may be."""
        hosts = None if self.hosts is None or "*" in self.hosts else self.hosts
        return BrowserScope.of(hosts, self.patterns)

    @property
    def limits(self) -> dict[str, object]:
        """Return the limits of a policy for the proxy."""
        return {
            **({} if self.hosts is None else {"hosts": list(self.hosts)}),
            "private": self.private,
        }

    def document(self) -> dict[str, object]:
        """Return the context as JSON data."""
        return {
            "name": self.name,
            "hosts": None if self.hosts is None else list(self.hosts),
            "private": self.private,
            "patterns": list(self.patterns),
            "state": None if self.state is None else dict(self.state),
            "temporary": self.temporary,
            "proof": self.proof,
            "recorded": self.recorded,
        }

    @classmethod
    def of(cls, value: object) -> ContextSpec:
        """Read a context.

        Raises:
            ShapeError: it is malformed.
        """
        path: shapes.Path = ("context",)
        fields = shapes.mapping(value, path)
        hosts, state = fields.get("hosts"), fields.get("state")
        return cls(
            name=shapes.filled(shapes.required(fields, "name", path), (*path, "name")),
            hosts=None if hosts is None else tuple(shapes.texts(hosts, (*path, "hosts"))),
            private=shapes.truth(fields.get("private", False), (*path, "private")),
            patterns=tuple(shapes.texts(fields.get("patterns", []), (*path, "patterns"))),
            state=None if state is None else shapes.mapping(state, (*path, "state")),
            temporary=shapes.truth(fields.get("temporary", False), (*path, "temporary")),
            proof=shapes.truth(fields.get("proof", False), (*path, "proof")),
            recorded=shapes.truth(fields.get("recorded", False), (*path, "recorded")),
        )
