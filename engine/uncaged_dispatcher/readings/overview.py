"""Overview of the sentences that a store reads: one example for each flow, by pack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from uncaged_engine.api import Engine

from ..index.rule_index import RuleIndex
from ..packs.verbs import VERBS

OTHER = "other"
"""Heading of flows that belong to no pack."""


def overview(engine: Engine) -> str:
    """Return the enabled packs with an example sentence for each of their enabled flows."""
    index = RuleIndex(engine)
    try:
        packs = index.packs()
        found: dict[str, list[str]] = {name: [] for name in packs.packs}
        for pack in packs.packs.values():
            if pack.built_in:
                found[pack.name] = [verb.example for verb in VERBS.values()]
        for flow, facts, _ in index.enabled():
            owner = packs.of_flow(flow, str(facts.get("pack", "")))
            if owner is None or owner.enabled:
                name = OTHER if owner is None else owner.name
                found.setdefault(name, []).extend(_example(facts))
    finally:
        index.close()
    described = {name: pack.description for name, pack in packs.packs.items() if pack.enabled}
    sections = [
        "\n".join([f"{name}: {described.get(name, '')}".rstrip(": "), *_lines(sentences)])
        for name, sentences in sorted(found.items(), key=lambda item: (item[0] == OTHER, item[0]))
        if sentences and (name == OTHER or name in described)
    ]
    return "\n\n".join(sections)


def _example(facts: Mapping[str, object]) -> list[str]:
    match facts.get("examples"):
        case [{"sentence": str(sentence)}, *_]:
            return [sentence]
        case [str(sentence), *_]:
            return [sentence]
        case _:
            return []


def _lines(sentences: list[str]) -> Iterator[str]:
    yield from (f"  {sentence}" for sentence in dict.fromkeys(sentences))
