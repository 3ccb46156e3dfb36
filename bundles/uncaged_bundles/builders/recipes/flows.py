"""A flow that is no role workflow is one of these three before it is built, be it read from a
recipe, a script file or a bundle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFlow:
    """What all have.

    parameters: JSON Schema. patterns: sentences that mean this flow; aliases: those of them that
    are one person's own words.
    examples: mappings with ``sentence``, perhaps ``params`` and ``success``. source: where it comes
    from.
    notes: what was assumed while it was read; for the person who adds it.
    """

    name: str
    description: str
    display_name: str
    source: str
    parameters: Mapping[str, object]
    patterns: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    examples: tuple[object, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFlow(RecipeFlow):
    """One script of the operating system.

    form: what it prints: text, json, objects or table. arguments: its command line, see
    ``carried.script.drive_script``.
    repeat: it may be run a second time when a crash leaves open whether it ran. policy: the limits
    of its script effect.
    """

    language: str
    body: str
    form: str = "text"
    arguments: tuple[object, ...] = ()
    repeat: bool = False
    policy: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFlow(RecipeFlow):
    """A Python script, ``async def execute(api, params)``. policy: None to have it inferred from
    the steps that the script names.
    """

    script: str
    policy: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFlow(RecipeFlow):
    """A script in a language that is not run here: kept, listed, and refused at run."""

    kind: str
    language: str
    text: str
    scope: Mapping[str, object] | None = None
