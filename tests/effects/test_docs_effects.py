"""docs/effects.md says what the handlers do: every kind, every key, every limit and every rule
after a crash.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from uncaged_browser.operations import OPERATIONS
from uncaged_bundles.fields import shape_of
from uncaged_bundles.limits import KNOWN_EFFECTS
from uncaged_capture.fixing.effects import FixBody
from uncaged_engine import plugins
from uncaged_engine.door.effects import Handler
from uncaged_engine.effect_kinds import handler_for

TEXT = (Path(__file__).parents[2] / "docs" / "effects.md").read_text("utf-8")
BUILT_IN = plugins.ours(plugins.EFFECTS)
WRITTEN = sorted(set(BUILT_IN) - {"null"})
"""The null effect is for tests, and its docstring is its page."""


def section(kind: str) -> str:
    found = re.search(rf"^## {kind}$(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/effects.md has no section {kind!r}"
    return found[1]


def keys_of(kind: str) -> frozenset[str]:
    """Return the keys that a body of this kind may have."""
    if kind == "browser":
        return frozenset(key for cls in OPERATIONS.values() for key in shape_of(cls).checks)
    if kind in {"prove", "propose"}:
        return frozenset(shape_of(FixBody).checks)
    places = {
        "catalog": "uncaged_dispatcher.translation.effect",
        "http": "uncaged_effects.web.request",
        "mcp": "uncaged_dispatcher.mcp.effect",
        "role": "uncaged_agents.turns.request",
        "script": "uncaged_effects.scripting.spec",
    }
    module = import_module(places.get(kind, f"uncaged_effects.{kind}"))
    return frozenset(shape_of(getattr(module, f"{kind.capitalize()}Body")).checks)


@pytest.mark.parametrize("kind", sorted({*BUILT_IN, "output"}))
def test_every_kind_has_a_section_and_a_row(kind: str) -> None:
    """A kind that is not written about does not exist for those who write bundles."""
    assert section(kind).strip()
    assert f"| [`{kind}`](#{kind}) |" in TEXT


@pytest.mark.parametrize("kind", WRITTEN)
def test_every_key_of_a_body_is_named(kind: str) -> None:
    """In the section of its kind, as code."""
    named = re.findall(r"[\w]+", " ".join(re.findall(r"`([^`]*)`", section(kind))))
    assert [key for key in sorted(keys_of(kind)) if key not in named] == []


@pytest.mark.parametrize("kind", sorted(KNOWN_EFFECTS))
def test_the_table_of_kinds_says_what_a_person_is_asked_to_grant(kind: str) -> None:
    """A row of the table has the kind's meaning in the words of the grant, and its rule where that
    does not depend on body or policy.
    """
    [row] = re.findall(rf"^\| \[`{kind}`\]\(#{kind}\) \| (.*) \| (.*) \|$", TEXT, re.MULTILINE)
    handler = handler_for(kind)
    assert row[0] == handler.limits.meaning
    if type(handler).rule is Handler.rule:
        assert row[1].startswith(f"`{handler.recovery}`")


@pytest.mark.parametrize("kind", sorted(KNOWN_EFFECTS))
def test_every_limit_of_a_policy_is_named(kind: str) -> None:
    """The section of a kind names each limit that a policy may set; the handler uses the class that
    validation uses.
    """
    assert handler_for(kind).limits is KNOWN_EFFECTS[kind]
    assert [
        key
        for key in sorted(shape_of(KNOWN_EFFECTS[kind]).checks)
        if f"`{key}`" not in section(kind)
    ] == []
