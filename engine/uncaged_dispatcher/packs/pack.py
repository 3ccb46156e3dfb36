"""Pack: flows that belong together, with entity types and rules of their own, as a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.errors import UncagedError, UsageError
from uncaged_bundles.hosts import check_entries
from uncaged_bundles.names import parse_flow_name
from uncaged_bundles.records import asdict, dataclass, field

from ..entities.types import EntityType, read_entity_type

OURS = "uncaged-workflow"
"""The distribution whose packs may call verbs of the command line."""
FROM_PERSON = "person"
FROM_FLOWS = "flows"
FROM_SERVER = "mcpServers in config.yaml"
"""Origins of packs that no distribution ships."""
MAX_PACK_BYTES = 1 << 20
MAX_RULE_CHARACTERS = 200_000
BUILT_IN = "product"
"""The shipped pack that has the sentences for the command itself."""
_KEYS = (
    "name",
    "description",
    "enabled",
    "priority",
    "hosts",
    "urlPatterns",
    "entities",
    "rules",
    "flows",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A pack file.

    enabled: as the file says; a person's `pack enable` and `pack disable` come before it. priority:
    the higher is preferred when readings of several packs are equal. hosts, url_patterns: its
    sentences are read only on such pages; none means anywhere. rules: text of the sentence
    grammar; its values are calls of the pack's flows.
    origin: the distribution that ships it, `FROM_PERSON`, `FROM_SERVER` for the tools of an MCP
    server, or `FROM_FLOWS` for a pack that only descriptors name.
    """

    name: str
    description: str = ""
    enabled: bool = True
    priority: int = 0
    hosts: tuple[str, ...] = ()
    url_patterns: tuple[str, ...] = ()
    entities: Mapping[str, EntityType] = field(default_factory=dict)
    rules: str = ""
    flows: tuple[str, ...] = ()
    origin: str = FROM_PERSON

    @property
    def is_of_site(self) -> bool:
        """Return whether its sentences are read on some pages only."""
        return bool(self.hosts or self.url_patterns)

    @property
    def is_shipped(self) -> bool:
        """Return whether a distribution ships the pack."""
        return self.origin not in (FROM_PERSON, FROM_FLOWS, FROM_SERVER)

    @property
    def built_in(self) -> bool:
        """Return whether the pack has the sentences for the command itself: it calls verbs, and
        cannot be disabled.
        """
        return self.origin == OURS and self.name == BUILT_IN

    def document(self) -> dict[str, object]:
        """Return the pack as JSON."""
        fields = asdict(self)
        return {**fields, "entities": {name: asdict(kind) for name, kind in self.entities.items()}}

    @classmethod
    def restore(cls, document: Mapping[str, Any]) -> Pack:
        """Return the pack of a `document`."""
        entities = {name: EntityType(**kind) for name, kind in document["entities"].items()}
        texts = {key: tuple(document[key]) for key in ("hosts", "url_patterns", "flows")}
        return cls(**{**document, **texts, "entities": entities})


def read_pack(data: bytes, where: str, origin: str = FROM_PERSON) -> Pack:
    """Check a pack file.

    Raises:
        UsageError: the first thing that is wrong, with its dotted path.
    """
    if len(data) > MAX_PACK_BYTES:
        raise UsageError(
            f"{where}: has {len(data):,} bytes; a pack file has at most {MAX_PACK_BYTES:,}"
        )
    # 20 ms of CPU, for a pack that was changed
    from uncaged_bundles.storage.document import load_yaml

    try:
        return _pack(load_yaml(data, where), origin)
    except UncagedError as exc:
        text = str(exc)
        raise UsageError(text if text.startswith(where) else f"{where}: {text}") from exc


def _pack(raw: object, origin: str) -> Pack:
    top: shapes.Path = ("pack",)
    fields = shapes.mapping(raw, top)
    shapes.known_keys(fields, _KEYS, top)
    shapes.json_data(fields, top)
    name = parse_flow_name(shapes.text(shapes.required(fields, "name", top), (*top, "name")))
    entities = shapes.mapping(fields.get("entities", {}), (*top, "entities"))
    rules = shapes.text(fields.get("rules", ""), (*top, "rules"))
    if len(rules) > MAX_RULE_CHARACTERS:
        raise shapes.ShapeError(
            (*top, "rules"),
            f"has {len(rules):,} characters; the rules of a pack have at most {MAX_RULE_CHARACTERS:,}",
        )
    hosts = shapes.texts(fields.get("hosts", []), (*top, "hosts"))
    check_entries(hosts, (*top, "hosts"))
    patterns = tuple(shapes.texts(fields.get("urlPatterns", []), (*top, "urlPatterns")))
    if patterns and not hosts:
        raise shapes.ShapeError((*top, "urlPatterns"), "narrow hosts; name hosts, too")
    return Pack(
        name=name,
        description=shapes.text(fields.get("description", ""), (*top, "description")),
        enabled=shapes.truth(fields.get("enabled", True), (*top, "enabled")),
        priority=shapes.whole(fields.get("priority", 0), (*top, "priority")),
        hosts=tuple(hosts),
        url_patterns=patterns,
        entities={
            key: read_entity_type(key, value, (*top, "entities", key))
            for key, value in entities.items()
        },
        rules=rules,
        flows=tuple(
            parse_flow_name(flow) for flow in shapes.texts(fields.get("flows", []), (*top, "flows"))
        ),
        origin=origin,
    )


def file_name(directory: Path, name: str) -> Path:
    """Return the path of a registered pack file."""
    return directory / f"{parse_flow_name(name)}.yaml"
