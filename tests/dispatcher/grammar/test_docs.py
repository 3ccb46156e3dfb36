"""The page about the language: its grammars load, and its sentences have their values."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from uncaged_dispatcher.grammar import limits, load
from uncaged_dispatcher.grammar.checks import ENTITIES
from uncaged_dispatcher.grammar.methods import METHODS
from uncaged_dispatcher.grammar.phrases import PHRASES

PAGE = (Path(__file__).parents[3] / "docs" / "grammar.md").read_text("utf-8")
EXAMPLES = re.findall(
    r"^```agr\n(.*?)^```\n\n\| sentence \| value \|\n\|---\|---\|\n((?:^\|[^\n]*\n)+)",
    PAGE,
    re.M | re.S,
)
ROW = re.compile(r"\| `(.*)` \| (?:`(.*)`|no reading) \|")


def test_the_page_has_an_example_for_each_grammar() -> None:
    """Each grammar of the page has a table of sentences."""
    assert len(EXAMPLES) == PAGE.count("```agr") > 0


@pytest.mark.parametrize(("grammar", "table"), EXAMPLES)
def test_the_sentences_of_the_page_have_their_values(grammar: str, table: str) -> None:
    """Each sentence has the value that the page says, or no reading."""
    loaded = load(grammar)
    assert loaded.warnings == ()
    for line in table.splitlines():
        row = ROW.fullmatch(line)
        assert row is not None, line
        best = loaded.best(row[1])
        assert (None if best is None else best.value) == (json.loads(row[2]) if row[2] else None), (
            line
        )


def test_the_page_lists_every_name_of_the_language() -> None:
    """Methods, entities, phrase sets and limits are on the page."""
    methods = {name for kind in METHODS.values() for name in kind}
    names = {*methods, *ENTITIES, *(f"<{name}>" for name in PHRASES)}
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
    for limit in (limits.MAX_CHARACTERS, limits.MAX_FILES, limits.MAX_RULES, limits.MAX_NESTING):
        assert f" {limit:,} " in PAGE
