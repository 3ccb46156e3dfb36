"""Names that a flow may not be given, byte order marks, JavaScript bundles, and what belongs to a
flow's name.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testbed.bundles import COUNT, granted, place_script, script_of
from uncaged_bundles.errors import UsageError
from uncaged_bundles.ids import bundle_hash
from uncaged_bundles.names import new_flow_name
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import HOME_VARIABLE, Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_bundles.version import __version__
from uncaged_cli import main
from uncaged_cli.catalog import VERBS
from uncaged_engine.api import Engine
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.journal import archive

BOM = b"\xef\xbb\xbf"
PURE = COUNT.replace(b"'policy': {'null': {}}", b"'policy': {}")
RECIPE_SCRIPT = "async def execute(api, params):\n    return {'success': True, 'message': 'said'}\n"
HASH_LIKE = "abcdefghjkmnp"
JAVASCRIPT = (
    b"export const descriptor = { name: 'x' };\nexport async function* run(input, options) {}\n"
)


@pytest.fixture
def opened(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    """An empty store that the command uses, with a bundle beside it."""
    store.registry_path.write_text(f'seeded: "{__version__}"\n')
    monkeypatch.setenv(HOME_VARIABLE, str(store.root))
    (tmp_path / "pure.py").write_bytes(PURE)
    monkeypatch.chdir(tmp_path)
    return store


@pytest.mark.parametrize("name", ["head", "latest", HASH_LIKE, *VERBS])
def test_a_flow_name_that_means_something_else_is_refused(name: str) -> None:
    """Every verb, `head`, `latest`, and what could be a bundle's hash."""
    with pytest.raises(UsageError, match=f"^{name!r} cannot name a flow: .*my-{name}"):
        new_flow_name(name)


@pytest.mark.parametrize("name", ["heads", "run-it", "abcdefghijkmn", "abcdefghjkmnpq", "summary"])
def test_other_flow_names_are_taken(name: str) -> None:
    """The control: a longer word, and one with a letter that no hash has."""
    assert new_flow_name(name) == name


def test_reserved_names_are_refused_at_add_and_import(
    opened: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is added, and the message says what to do."""
    (tmp_path / "say.sh").write_text("echo hello\n")
    (tmp_path / "say.json").write_text(
        json.dumps({"name": "say", "description": "d", "script": RECIPE_SCRIPT})
    )
    for words in (
        ["add", "head", "pure.py"],
        ["add", "run", "say.sh", "--accept"],
        ["import", "say.json", "--name", "latest", "--accept"],
    ):
        assert main.run(words) == 2, capsys.readouterr()
        assert "cannot name a flow" in capsys.readouterr().err
    assert not Registry(opened).read().flows


def test_a_registry_with_a_reserved_name_is_read_and_changed(
    opened: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flow that an older version added as `head` is listed, resolved, and can be removed."""
    Registry(opened).add("head", read_bundle(PURE, KNOWN), now_ms=1)
    assert main.run(["list"]) == 0
    assert "head " in capsys.readouterr().out
    assert main.run(["history", "head"]) == 0
    assert main.run(["remove", "head"]) == 0
    assert not Registry(opened).read().flows


def test_a_byte_order_mark_is_removed(
    opened: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle and a recipe with a mark give what they give without it; the hash is that of the
    stored bytes.
    """
    (tmp_path / "marked.py").write_bytes(BOM + PURE)
    assert main.run(["add", "marked", "marked.py"]) == 0
    flow = Registry(opened).read().flows["marked"]
    assert flow.hash == bundle_hash(PURE)
    assert opened.bundle_path(flow.hash).read_bytes() == PURE
    assert Engine(opened).add("other", BOM + PURE, accept=lambda _widened: True).hash == flow.hash
    recipe = json.dumps({"name": "say", "description": "d", "script": RECIPE_SCRIPT}).encode()
    for mark in (b"", BOM):
        (tmp_path / "say.json").write_bytes(mark + recipe)
        assert main.run(["build", "say.json"]) == 0, capsys.readouterr()
    opened.registry_path.write_bytes(BOM + opened.registry_path.read_bytes())
    opened.config_path.write_bytes(BOM + b"limits: {maxRounds: 3}\n")
    assert main.run(["disable", "marked"]) == 0
    assert Engine(opened).config.limits.max_rounds == 3


@pytest.mark.parametrize("file", ["flow.esm.js", "flow.mjs"])
def test_a_javascript_bundle_gets_a_message_that_fits(
    opened: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """The message says what the file is and how its flow can be written here."""
    (tmp_path / file).write_bytes(JAVASCRIPT)
    assert main.run(["add", "flow", file]) == 2
    told = capsys.readouterr().err
    assert f"'{file}' is a JavaScript bundle and is not run" in told
    assert "uncaged-workflow init" in told
    assert not Registry(opened).read().flows


def test_threads_of_a_flow_include_damaged_ones(
    opened: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thread whose start record cannot be read is listed with its flow, and with a removed flow's
    name.
    """
    engine = Engine(opened)
    bundle = granted(opened, COUNT)
    whole = place_script(opened, bundle, script_of(bundle).done(1).end("completed"))
    broken = place_script(opened, bundle, script_of(bundle, number=1))
    broken.path.write_bytes(b"\0" * 300)
    other = granted(opened, PURE.replace(b"'name': 'count'", b"'name': 'other'"))
    place_script(opened, other, script_of(other, number=2))
    for _ in ("there", "removed"):
        assert main.run(["threads", "count", "--json"]) == 0
        listed = {one["threadId"]: one["status"] for one in json.loads(capsys.readouterr().out)}
        assert listed == {whole.thread: "completed", broken.thread: "corrupt"}
        if "count" in engine.registry.read().flows:
            engine.registry.remove("count")


def test_used_counts_by_name(opened: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """Two names of one bundle are counted apart, archived threads included, damaged ones with each
    name of their bundle.
    """
    bundle = granted(opened, COUNT)
    Registry(opened).add("twin", bundle, now_ms=1)
    for number, name in enumerate(("count", "count", "twin")):
        script = script_of(bundle, number=number).done(1).end("completed")
        script = (
            script
            if name == "count"
            else type(script).begun(bundle.hash, script.thread, name=name).done(1).end("completed")
        )
        placed = place_script(opened, bundle, script)
        if number == 0:
            archive.compress(placed.path)
    assert main.run(["list", "--json"]) == 0
    used = {
        flow["flow"]: flow["usageCount"] for flow in json.loads(capsys.readouterr().out)["flows"]
    }
    assert used == {"count": 2, "twin": 1}
