"""Overview of the sentences that a store reads: one example for each flow, by pack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from uncaged_bundles.records import dataclass
from uncaged_engine.api import Engine

from ..index.rule_index import RuleIndex
from ..packs.sites import CurrentSite
from ..packs.verbs import VERBS

OTHER = "other"
"""Heading of flows that belong to no pack."""
_GROUP = re.compile(r"(?<!\$)\(\s*([\w-]+)(?:\s*\|\s*[\w-]+)*\s*\)")
_CAPTURE = re.compile(r"\$\(\s*([\w-]+)[^()]*\)(\?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowExamples:
    """Example sentences of a flow. pack: empty for a flow without one. pattern: of a flow that
    declares its pack, the first one in words for people.
    """

    flow: str
    pack: str
    sentences: tuple[str, ...]
    pattern: str


def overview(engine: Engine) -> str:
    """Return the enabled packs with an example sentence for each of their enabled flows. The tools
    of MCP servers are listed if that was not done.
    """
    # 30 ms of CPU: only for a person who asks
    from ..mcp.servers import McpPacks

    McpPacks(engine).bring_in()
    index = RuleIndex(engine)
    try:
        index.refresh()
        packs = index.packs()
        found: dict[str, list[str]] = {name: [] for name in packs.packs}
        for pack in packs.packs.values():
            if pack.built_in:
                found[pack.name] = [verb.example for verb in VERBS.values()]
        for example in _examples(index):
            shown = example.sentences[:1] or ([example.pattern] if example.pattern else [])
            found.setdefault(example.pack or OTHER, []).extend(shown)
    finally:
        index.close()
    described = {name: pack.description for name, pack in packs.packs.items() if pack.enabled}
    sections = [
        "\n".join([f"{name}: {described.get(name, '')}".rstrip(": "), *_lines(sentences)])
        for name, sentences in sorted(found.items(), key=lambda item: (item[0] == OTHER, item[0]))
        if sentences and (name == OTHER or name in described)
    ]
    return "\n\n".join(sections)


def _readable(pattern: str) -> str:
    """Return a pattern for people: the first word of a group, and captures in capitals."""
    words = _GROUP.sub(r"\1", pattern)
    return _CAPTURE.sub(
        lambda found: f"[{found[1].upper()}]" if found[2] else found[1].upper(), words
    )


def example_sentences(engine: Engine) -> list[FlowExamples]:
    """Return the example sentences of the enabled flows of enabled packs."""
    index = RuleIndex(engine)
    try:
        index.refresh()
        return [found for found in _examples(index) if found.sentences]
    finally:
        index.close()


def _examples(index: RuleIndex) -> Iterator[FlowExamples]:
    packs, site = index.packs(), CurrentSite(index.store)
    for flow, facts, rules in index.enabled():
        owner = packs.of_flow(flow, str(facts.get("pack", "")))
        if owner is None or (owner.enabled and site.lack(owner) is None):
            yield FlowExamples(
                flow=flow,
                pack="" if owner is None else owner.name,
                sentences=tuple(_sentences(facts)),
                pattern=_readable(rules[0].pattern) if rules and facts.get("pack") else "",
            )


def _sentences(facts: Mapping[str, object]) -> Iterator[str]:
    examples = facts.get("examples")
    for example in examples if isinstance(examples, list) else ():
        match example:
            case {"sentence": str(sentence)} | str(sentence):
                yield sentence
            case _:
                pass


def _lines(sentences: list[str]) -> Iterator[str]:
    yield from (f"  {sentence}" for sentence in dict.fromkeys(sentences))
