"""Script recipe that is made of a trace, with its parameters, and what a person is shown of it."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.records import dataclass, field

from ..selecting import Dropped
from ..values import Parameter
from ..wording import Wording

__all__ = ["Captured", "default_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A flow that was made of a trace and is not proved yet.

    recipe: JSON data without its wording, see `worded` and `parse_recipe`. secrets: the commands
    that may get each secret, by its name. steps: one line for each step of the flow. remarks: what
    a person should know of it.
    """

    recipe: Mapping[str, object]
    wording: Wording
    parameters: tuple[Parameter, ...]
    steps: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    remarks: tuple[str, ...] = ()
    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, object]:
        """Return the values of the recorded run, by the names of the parameters."""
        return {one.name: default_of(one) for one in self.parameters}


def default_of(parameter: Parameter) -> object:
    """Return the value of the recorded run as its type has it."""
    if parameter.secret:
        return f"secret:{parameter.secret}"
    match parameter.type:
        case "integer":
            return int(parameter.value)
        case "number":
            return float(parameter.value)
        case _:
            return parameter.value
