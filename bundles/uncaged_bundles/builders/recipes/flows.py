"""Flows before they are built: read from a recipe, a script file, or back from a bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WEB_SECONDS = 180.0
"""Time limit of a web flow that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFlow:
    """The fields that all kinds of flow have.

    parameters: JSON Schema. patterns: sentence patterns that start this flow; aliases: those of
    them that are a person's own. examples: mappings with ``sentence``, perhaps ``params`` and
    ``success``. source: its origin. on_failure: the descriptor's ``onFailure``, or "".
    notes: assumptions made while reading it, for the person who adds it.
    """

    name: str
    description: str
    display_name: str
    source: str
    parameters: Mapping[str, object]
    patterns: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    examples: tuple[object, ...] = ()
    on_failure: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFlow(RecipeFlow):
    """One script of the operating system.

    form: the form of its output: text, json, objects or table. arguments: its command line, see
    ``carried.script.drive_script``. repeat: it may be run again after a crash that leaves open
    whether it ran. policy: the limits of its script effect.
    """

    language: str
    body: str
    form: str = "text"
    arguments: tuple[object, ...] = ()
    repeat: bool = False
    policy: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFlow(RecipeFlow):
    """A Python script, ``async def execute(api, params)``. policy: None means that it is
    inferred from the script's steps.
    """

    script: str
    policy: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFlow(RecipeFlow):
    """A task in a web browser: steps with placeholders for parameters, or a Python script,
    ``async def execute(browser, params)``. scope: as the recipe has it. policy: the limits of its
    browser effect. max_seconds: the time that a thread of it may run.
    """

    steps: tuple[Mapping[str, object], ...] = ()
    script: str = ""
    scope: Mapping[str, object]
    policy: Mapping[str, object]
    max_seconds: float = WEB_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFlow(RecipeFlow):
    """A script in a language that is not run here: kept, listed, and refused at run."""

    kind: str
    language: str
    text: str
    scope: Mapping[str, object] | None = None
