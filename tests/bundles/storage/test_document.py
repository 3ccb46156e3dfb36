from __future__ import annotations

import datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.document import MAX_BYTES, MAX_DEPTH, Document, load_yaml

BILLION_LAUGHS = b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


def document(text: str) -> Document:
    return Document.parse(text.encode(), "file")


@pytest.mark.parametrize("blank", ["", "\n\n", "# only a comment\n", "---\n", "null\n", "{}\n"])
def test_a_blank_file_is_an_empty_document(blank: str) -> None:
    """Nothing in it, and something can be put in."""
    made = document(blank)
    assert made.section("flows") == []
    made.put("flows", "a", {"hash": "x"})
    assert yaml.safe_load(made.encode()) == {"flows": {"a": {"hash": "x"}}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (BILLION_LAUGHS, r"^file:1: anchors and aliases"),
        (b"a: [1]\nb: *a\n", r"^file:2: anchors and aliases"),
        (b"a: &x 1\n", r"^file:1: anchors and aliases"),
        (b"[" * 100_000, r"^file:1: nested deeper than 48 levels"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), r"^file:1: nested deeper than 48 levels"),
        (b"{a: " * 50_000, r"^file:1: nested deeper than 48 levels"),
        (b"- " * 50_000, r"^file:1: nested deeper than 48 levels"),
        (b"a: 1\nb: [\n", r"^file:\d: not YAML: "),
        (b"a: 1\n b: 2\n", r"^file:2: not YAML: "),
        (b"a: \xff\n", r"^file: not YAML: "),
        (b"a: \x00\n", r"^file: not YAML: "),
        (b"a: 1\n---\nb: 1\n", r"^file:2: not YAML: "),
        (b"#" * (MAX_BYTES + 1), r"^file: 8,388,609 bytes; more than 8,388,608"),
        (
            b"a: !!python/object/apply:os.system [echo]\n",
            r"^file: could not determine a constructor",
        ),
        (b"a: " + b"9" * 5000, r"^file: a value that cannot be read"),
        (b"a: 2001-99-99\n", r"^file: a value that cannot be read"),
        (b"a: 1\nb: 2\na: 3\n", r"^file: the key 'a' is there twice \(line 3\)"),
        (b"a: {b: [{c: 1, c: 2}]}\n", r"^file: the key 'c' is there twice \(line 1\)"),
        (b"? [a]\n: 1\n", r"^file: "),
    ],
)
def test_hostile_yaml_is_a_damaged_file(data: bytes, message: str) -> None:
    """Nothing unfolds, nothing is built, nothing crashes: one error with file and line."""
    with pytest.raises(DamagedError, match=message):
        load_yaml(data, "file")


def test_plain_yaml_is_plain_data() -> None:
    """The usual scalars and collections, up to the depth that is allowed; a blank file is
    nothing.
    """
    assert load_yaml(b"a: [1, 2.5, true, null, x]\nb: {c: 2001-01-02}", "file") == {
        "a": [1, 2.5, True, None, "x"],
        "b": {"c": datetime.date(2001, 1, 2)},
    }
    assert load_yaml(b"", "file") is None
    assert load_yaml(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, "file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]\n", "^file:1: the file must hold a mapping"),
        ("just text\n", "^file:1: the file must hold a mapping"),
        ("flows: {}\nother: 1\nflows: {}\n", "^file:1: the key 'flows' is there twice"),
    ],
)
def test_a_document_is_a_mapping_with_single_keys(text: str, message: str) -> None:
    """Which of two sections counts is not guessed."""
    with pytest.raises(DamagedError, match=message):
        document(text)


def test_a_section_is_a_mapping() -> None:
    """Any other value is an error with its line; a section without a value is empty."""
    assert document("flows:\n").section("flows") == []
    with pytest.raises(DamagedError, match=r"^file:2: 'flows' must be a mapping"):
        document("a: 1\nflows: []\n").section("flows")


def test_what_is_not_changed_survives_as_it_was_written() -> None:
    """Malformed entries, foreign tags, foreign sections and fields keep their value, tag and
    place.
    """
    text = "flows:\n  bad: !!python/object:x.Y {a: 1}\n  a:\n    hash: '0123'\n    colour: blue\n  b: 007\nother: [1, 2]\n"
    made = document(text)
    made.put("flows", "a", {"hash": "4567", "new": [1, {"x": None}]})
    made.put("flows", "c", {"hash": "89"})
    made.drop("flows", "b")
    expected = (
        "flows:\n  bad: !!python/object:x.Y {a: 1}\n  a:\n    hash: '4567'\n    colour: blue\n    new:\n    - 1\n    - x: null\n"
        "  c:\n    hash: '89'\nother: [1, 2]\n"
    )
    assert made.encode().decode() == expected


def test_an_entry_knows_its_line_and_fails_alone() -> None:
    """A value that cannot be read does not affect the next."""
    first, second = document("flows:\n  a: !!set 1\n\n  b: 2\n").section("flows")
    assert (first.key, first.line, second.key, second.line, second.value()) == ("a", 2, "b", 4, 2)
    with pytest.raises(ValueError, match="expected a mapping"):
        first.value()


def test_a_key_that_is_no_text_equals_no_name() -> None:
    """``1:``, ``true:`` and ``[a]:`` are not the names '1', 'true' and 'a'."""
    keys = [
        entry.key
        for entry in document("flows:\n  1: x\n  true: x\n  [a]: x\n  'no': x\n").section("flows")
    ]
    assert keys[3] == "no"
    assert not {"1", "true", "a"} & set(keys)


def test_putting_twice_and_dropping_leave_one_and_none() -> None:
    """An entry that is there twice goes altogether."""
    made = document("flows: {a: 1, b: 2, a: 3}\n")
    made.drop("flows", "a")
    made.drop("flows", "missing")
    made.drop("missing", "a")
    assert [entry.key for entry in made.section("flows")] == ["b"]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_values_survive_writing_and_reading(fields: dict[str, object]) -> None:
    """Text that looks like a number, a date or nothing stays text."""
    made = document("")
    made.put("flows", "a", fields)
    encoded = made.encode()
    assert load_yaml(encoded, "file") == {"flows": {"a": fields}}
    assert Document.parse(encoded, "file").encode() == encoded
