"""API for definitions of role workflows, as data and pure functions; ``builders.build_workflow``
makes a bundle of one.

planner = Role(name="planner", description=…, system_prompt=…, extract_prompt=…, schema=…)

def moderator(ctx: View) -> str:
    return "planner" if not ctx.steps else END

workflow = Workflow(name="plan-only", description="…", roles=(planner,), moderator=moderator)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .carried.workflow import END, START, View
from .errors import BundleError

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "END",
    "START",
    "Graph",
    "Moderator",
    "Recover",
    "Result",
    "Role",
    "Table",
    "View",
    "Workflow",
]

Table = Mapping[str, str | Mapping[str, str]]
"""``{START: "planner", "planner": {"planned": "coder", "aborted": END}}``: the next role by the
last step's role and ``meta.status``. A word in place of an inner mapping is where to go whatever
the status."""

Graph = Mapping[str, str | Mapping[str, str | Sequence[str]]]
"""The edges that a moderator may take: as a table, and a status may list several roles."""

Moderator = Callable[[View], str | tuple[str, str]]
Result = Callable[[View], Mapping[str, object]]
Recover = Callable[[View, View], str | tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role as pure data: its prompts, and the schema of the data of its answers.

    system_prompt: for the agent. extract_prompt: for the extractor, which turns an answer into
    data. schema: JSON Schema, or a pydantic model class.
    """

    name: str
    description: str
    system_prompt: str
    extract_prompt: str
    schema: Mapping[str, object] | type[BaseModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """Roles, and the rule that selects the next one.

    A function gets ``ctx``: ``threadId``, ``start`` (``prompt``, ``params``) and ``steps``, each
    with ``role``, ``content``, ``meta`` and ``timestamp`` (ms). All of it is read-only, and
    mappings have their keys as attributes. A function must be pure: same steps, same result.

    moderator: a function that returns a role's name, a role's name and a note to it (``"coder",
    "Only the parser."``), or END; or a table.
    graph: if the moderator is a function, the edges that it may take. The builder checks them like
    a table, and `graph` draws them.
    policy: the effects that the workflow asks for; by default only its roles, without files.
    parameters: JSON Schema of a run's params; by default there are none.
    result: a function that returns ``{"success", "message", "data"}`` at END; by default, success
    with the last step's content and meta.
    recover: a function of ``ctx`` and the failure (``role``, ``kind``, ``message``, and ``times``:
    failures in a row) that selects the next role after a failed role step, or END. By default such
    a run ends without success and names the role and the reason.
    continues: whether a thread of another version may go on in this one.
    on_failure: "fix": a failed thread that is followed is fixed, which ends in a proposal.
    """

    name: str
    description: str
    roles: Sequence[Role]
    moderator: Moderator | Table
    graph: Graph | None = None
    policy: Mapping[str, object] = field(default_factory=lambda: {"role": {}})
    parameters: Mapping[str, object] = field(
        default_factory=lambda: {"type": "object", "additionalProperties": False}
    )
    result: Result | None = None
    recover: Recover | None = None
    continues: bool = True
    on_failure: str = ""

    def __post_init__(self) -> None:
        names = [role.name for role in self.roles]
        if not names:
            raise BundleError(f"workflow {self.name!r} has no roles; give it at least one")
        if self.graph is not None and isinstance(self.moderator, Mapping):
            raise BundleError(
                f"workflow {self.name!r} has a table and a graph; the table is the graph, leave the other out"
            )
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise BundleError(
                f"workflow {self.name!r} has two roles named {', '.join(map(repr, twice))}; rename one"
            )
