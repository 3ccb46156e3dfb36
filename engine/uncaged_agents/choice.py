"""Chosen agent: the kind and the settings behind a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.rights import ALL_TOOLS, Rights
from uncaged_engine.services.settings import NOTHING, Config

from .kinds import is_kind, kind_of, kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Chosen agent. use: its kind. settings: its own, secrets still as ``secret:NAME``. reason: why
    it was chosen. options: those of the settings that were given for this thread alone.
    """

    name: str
    use: str
    settings: Mapping[str, object]
    reason: str
    options: Mapping[str, object] = field(default_factory=dict)

    def is_same(self, other: Choice | None) -> bool:
        """Return whether it is the same agent; the reason does not count."""
        return other is not None and (self.name, self.settings) == (other.name, other.settings)

    def recorded(self, rights: Rights = ALL_TOOLS) -> dict[str, object]:
        """Return its fields of the start record, with how far it is held to *rights*."""
        fields: dict[str, object] = {
            "name": self.name,
            "use": self.use,
            "settings": dict(self.settings),
            "reason": self.reason,
            **({"options": dict(self.options)} if self.options else {}),
        }
        limits = kind_of(self.use).holds(self.settings, rights) if rights.is_narrowed else None
        return fields if limits is None else {**fields, "limits": limits}


def with_options(choice: Choice, options: Mapping[str, object], directory: Path) -> Choice:
    """Return *choice* with settings for one thread, which take precedence over the config's."""
    if not options:
        return choice
    own = with_absolute_paths(options, directory)
    return replace(choice, settings={**choice.settings, **own}, options={**choice.options, **own})


def agent_named(name: str, config: Config, reason: str, directory: Path) -> Choice:
    """Return the agent that *name* means: one of the config, a kind, a known coding agent, or
    ``KIND:…``.

    Raises:
        NotFoundError: there is no such agent. UsageError: the word after the kind is wrong.
    """
    if name in config.agents:
        return Choice(
            name=name,
            use=config.agents[name].use,
            settings=configured_settings(name, config, directory),
            reason=reason,
        )
    kind, colon, rest = name.partition(":")
    if colon and is_kind(kind) and (settings := kind_of(kind).parse(rest)) is not None:
        return Choice(
            name=kind, use=kind, settings=with_absolute_paths(settings, directory), reason=reason
        )
    if is_kind(name):
        return Choice(name=name, use=name, settings=NOTHING, reason=reason)
    from .program.table import table

    row = table().get(name)
    if row is None:
        known = sorted({*config.agents, *kinds(), *table()})
        near = get_close_matches(name, known, n=3) or known
        raise NotFoundError(
            f"there is no agent {name!r} (known: {', '.join(near)}); `uncaged-workflow agents` lists all, config.yaml may define more"
        )
    return Choice(name=name, use=row.use, settings={"row": name}, reason=reason)


def configured_settings(name: str, config: Config, directory: Path) -> dict[str, object]:
    """Return the settings that the config has for an agent. Relative paths in them start at its
    file, or at *directory* if it has none.
    """
    start = config.path.parent if config.path is not None else directory
    return with_absolute_paths(config.agents[name].settings, start)


def with_absolute_paths(settings: Mapping[str, object], directory: Path) -> dict[str, object]:
    """Return the settings with absolute paths, since the worker has another directory. A program
    without a slash is looked up on PATH later.
    """
    result = dict(settings)
    file, argv = result.get("file"), result.get("argv")
    if isinstance(file, str):
        result["file"] = str(directory / Path(file).expanduser())
    if isinstance(argv, list) and argv and isinstance(argv[0], str) and "/" in argv[0]:
        result["argv"] = [str(directory / Path(argv[0]).expanduser()), *argv[1:]]
    return result
