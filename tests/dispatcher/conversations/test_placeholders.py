"""Placeholders of a translated call, in the four modes of paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_bundles.errors import UsageError
from uncaged_dispatcher.conversations.placeholders import PathMode, resolve_placeholders

ENTITIES: list[dict[str, Any]] = [
    {
        "name": "Q3 report",
        "type": "file",
        "value": [{"to": "/tmp/q3.pdf", "size": 12, "old": None}],
    },
    {"name": "Anna", "type": "person", "value": {"vip": True, "tags": ["a", "ä"]}},
]
RESULTS: list[dict[str, Any]] = [
    {"success": True, "message": "3 files", "data": {"files": ["a", "b"]}},
    {"success": True, "message": "only words", "data": None},
]


def resolve(value: object, mode: PathMode = "throw") -> Any:
    return resolve_placeholders(value, entities=ENTITIES, results=RESULTS, mode=mode)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${entity-0}", "Q3 report"),
        ("${entity-0}[Revenue]", "Q3 report[Revenue]"),
        ("send ${entity-0} to ${entity-1}", "send Q3 report to Anna"),
        ("${entity-0.value[0].to}", "/tmp/q3.pdf"),
        ("<${entity-0.value[0].size}>", "<12>"),
        ("<${entity-0.value[0].old}>", "<>"),
        ("${entity-1.value.vip}", "true"),
        ("${entity-1.value.tags}", '["a","ä"]'),
        ("${entity-0.value[0]}", '{"to":"/tmp/q3.pdf","size":12,"old":null}'),
        ("${result-0}", '{"files":["a","b"]}'),
        ("${result-1}", "only words"),
        ("${result-0.data.files[1]}", "b"),
        ("no placeholder: $entity-0 {entity-0} ${entity} ${entity-x} $${x}", None),
    ],
)
def test_a_placeholder_becomes_text(text: str, expected: str | None) -> None:
    """Whole or inside a text; null is empty, numbers and booleans are text, the rest is JSON."""
    assert resolve(text) == (text if expected is None else expected)


def test_placeholders_are_found_at_every_depth() -> None:
    """Objects and lists are walked; keys and other values stay."""
    value = {"${entity-0}": ["${entity-1}", {"n": 1, "ok": True, "x": None}], "y": "${entity-0}"}
    assert resolve(value) == {
        "${entity-0}": ["Anna", {"n": 1, "ok": True, "x": None}],
        "y": "Q3 report",
    }


MISSES = ["${entity-0.value[1].to}", "${entity-0.value.to}", "${entity-0.type.x}", "${entity-0.a}"]


@pytest.mark.parametrize("text", MISSES)
def test_a_path_that_leads_nowhere_follows_the_mode(text: str) -> None:
    """`throw` raises with the placeholder and the text, `fallback-to-name` takes the name,
    `passthrough` keeps the placeholder, and `off` follows no path at all.
    """
    with pytest.raises(UsageError) as caught:
        resolve(f"say {text}")
    assert str(caught.value) == f'Entity path did not resolve: {text} in "say {text}"'
    assert resolve(f"say {text}", "fallback-to-name") == "say Q3 report"
    assert resolve(f"say {text}", "passthrough") == f"say {text}"
    assert resolve(f"say {text}", "off") == f"say {text}"


def test_off_follows_no_path_and_resolves_names() -> None:
    """A path that would resolve stays; a placeholder without a path is replaced."""
    assert resolve("${entity-0.value[0].to} ${entity-0}", "off") == (
        "${entity-0.value[0].to} Q3 report"
    )


@pytest.mark.parametrize("mode", ["throw", "fallback-to-name", "passthrough", "off"])
@pytest.mark.parametrize("path", ["", ".value[0].to"])
def test_a_missing_reference_is_an_error_in_each_mode(mode: PathMode, path: str) -> None:
    """The message has the reference and the whole text."""
    with pytest.raises(UsageError) as caught:
        resolve(f"open ${{entity-7{path}}} now", mode)
    expected = f'Entity reference not found: ${{entity-7}} in "open ${{entity-7{path}}} now"'
    assert str(caught.value) == expected
    with pytest.raises(UsageError, match=r"Result reference not found: \$\{result-2\}"):
        resolve("${result-2}", mode)


def test_a_replacement_is_not_read_again() -> None:
    """A thing whose name looks like a placeholder stays as it is named."""
    entities = [{"name": "${entity-1}"}, {"name": "secret"}]
    assert resolve_placeholders("${entity-0}", entities=entities) == "${entity-1}"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_values_without_placeholders_stay(value: object) -> None:
    """Any value without the two marks is returned unchanged, whatever it has."""
    if "${" not in repr(value):
        assert resolve_placeholders(value) == value
