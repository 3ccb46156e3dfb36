"""Comments that a person wrote in `workflow.yaml` survive every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_bundles.storage.document import Document
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import HOME_VARIABLE, Store
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_bundles.version import __version__
from uncaged_cli import main

SOURCE = """descriptor = {{"contract": 1, "name": "x", "description": "{}", "kind": "task", "policy": {{"null": {{}}}}}}


def run(input, options):
    yield {{"null": {{}}}}
"""
COMMENTS = (
    "of the file",
    "of the section",
    "above one",
    "beside one",
    "beside the hash",
    "beside enabled",
    "above two",
    "in a history",
    "at the end",
)


def version(number: int) -> Bundle:
    from uncaged_engine.effect_kinds import KNOWN

    return read_bundle(SOURCE.format(number).encode(), KNOWN)


@pytest.fixture
def commented(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    """A store whose registry a person has commented everywhere."""
    monkeypatch.setenv(HOME_VARIABLE, str(store.root))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.py").write_text(SOURCE.format(3))
    for number in (1, 2):
        store.put_bundle(version(number))
    store.registry_path.write_text(
        f"""# of the file
seeded: "{__version__}"
workflows:  # of the section
  # above one
  one:  # beside one
    hash: {version(1).hash}  # beside the hash
    timestamp: 5
    enabled: true  # beside enabled
    note: 'a # that is no comment'
    history:
    - hash: {version(2).hash}
      # in a history
      timestamp: 4

  # above two
  two: {{hash: {version(1).hash}, timestamp: 6}}
# at the end
"""
    )
    return store


@pytest.mark.parametrize(
    "words",
    [
        ["add", "one", "new.py", "--accept"],
        ["add", "two", "new.py", "--accept"],
        ["add", "three", "new.py", "--accept"],
        ["disable", "one"],
        ["disable", "two"],
        ["rollback", "one"],
        ["remove", "one"],
        ["remove", "two"],
    ],
    ids=" ".join,
)
def test_comments_in_the_registry_survive_every_command(commented: Store, words: list[str]) -> None:
    """Each comment is still there, once, and the registry has the command's change."""
    assert main.run(words) == 0
    text = commented.registry_path.read_text()
    assert {comment: text.count(f"# {comment}\n") for comment in COMMENTS} == dict.fromkeys(
        COMMENTS, 1
    ), text
    snapshot = Registry(commented).read()
    assert snapshot.problems == ()
    flows = snapshot.flows
    match words:
        case ["add", name, *_]:
            assert flows[name].hash == version(3).hash
            assert Registry(commented).granted(version(3))
        case ["disable", name]:
            assert not flows[name].enabled
        case ["rollback", name]:
            assert flows[name].hash == version(2).hash
        case ["remove", name]:
            assert name not in flows
            assert name in snapshot.removed
        case _:
            pass
    assert ("one" in flows, "two" in flows) == (
        words != ["remove", "one"],
        words != ["remove", "two"],
    )


def test_comments_stay_where_they_were(commented: Store) -> None:
    """A command changes the lines that it is about, and no other."""
    before = commented.registry_path.read_text().splitlines()
    assert main.run(["disable", "one"]) == 0
    after = commented.registry_path.read_text().splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=False) if old != new]
    assert changed == [
        ("    enabled: true  # beside enabled", "    enabled: false  # beside enabled")
    ]
    assert main.run(["enable", "one"]) == 0
    assert commented.registry_path.read_text().splitlines()[: len(before)] == before


@pytest.mark.parametrize(
    "text",
    [
        "# c\n",
        "workflows: {}  # c\n",
        "workflows:\n  # c\n  a: {x: 1}\n",
        "# c\n{workflows: {a: {x: 1}}}\n",
        "workflows:\n  a: {x: 1}\n  # c\n  a: {x: 2}\n",
        "workflows: # c\n",
        "workflows:\n    'a':   # c\n        text: |\n          # no comment\n        x: 1\n",
        "workflows:\n  a:\n    x: [1,\n      2] # c\n",
    ],
)
def test_odd_texts_keep_their_comment_and_take_the_change(text: str) -> None:
    """Flow style, empty sections, repeated keys, block scalars: the change is made, and the comment
    is kept.
    """
    document = Document.parse(text.encode(), "w")
    document.put("workflows", "b", {"x": 3, "when": "12:30:45"})
    document.put("workflows", "a", {"x": 4})
    document.put_top("removed", ["yes"])
    written = document.rewritten()
    assert b"# c\n" in written
    assert Document.parse(written, "w").encode() == Document.parse(document.encode(), "w").encode()
    assert {
        entry.key: entry.value() for entry in Document.parse(written, "w").section("workflows")
    }["b"] == {"x": 3, "when": "12:30:45"}
