"""Flows of template packages reach a store, also one that was opened before the package was
installed.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.bundles import COUNT
from uncaged_bundles.storage.store import HOME_VARIABLE
from uncaged_bundles.validation.validate import read_bundle
from uncaged_bundles.version import __version__
from uncaged_cli import main
from uncaged_engine import shipped
from uncaged_engine.api import Engine
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.shipped import STAMPS, shipped_flows

pytestmark = pytest.mark.slow

Install = Callable[..., None]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on the module path in which packages can be installed."""
    directory = tmp_path / "packages"
    # an installer compiles modules; else the first import would change the directory once more
    (directory / "__pycache__").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(directory))
    return directory


def install(packages: Path, name: str, module: str, *, version: str = "1.0") -> None:
    """Install a distribution with one template module."""
    (packages / f"{name}.py").write_text(module)
    information = packages / f"{name}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    )
    (information / "entry_points.txt").write_text(
        f"[uncaged_workflow.templates]\n{name} = {name}:flows\n"
    )


def flows(*names: str) -> str:
    """The text of a template module."""
    return (
        f"SOURCE = {COUNT!r}\n\n\ndef flows():\n    return [(name, SOURCE) for name in {names!r}]\n"
    )


def test_a_template_package_installed_later_arrives(packages: Path, tmp_path: Path) -> None:
    """The next open adds its flows, granted; the open after that imports no package and looks for
    none.
    """
    root = tmp_path / "store"
    before = set(Engine.open(root).registry.read().flows)
    assert "list-files" in before
    install(packages, "later_one", flows("from-later"))
    engine = Engine.open(root)
    assert set(engine.registry.read().flows) == before | {"from-later"}
    assert engine.registry.granted(engine.bundle("from-later"))
    for name in ("later_one", "importlib.metadata"):
        sys.modules.pop(name, None)
    assert set(Engine.open(root).registry.read().flows) == before | {"from-later"}
    assert not {"later_one", "importlib.metadata"} & set(sys.modules)


def test_what_a_person_removed_stays_removed(packages: Path, tmp_path: Path) -> None:
    """A new version of the package brings its new flows only, and takes no name that a person
    gave.
    """
    root = tmp_path / "store"
    install(packages, "later_two", flows("gone", "mine"))
    engine = Engine.open(root)
    engine.registry.remove("gone")
    mine = engine.add("mine", COUNT.replace(b"sum", b"total"), accept=lambda _widened: True).hash
    install(packages, "later_three", flows("gone", "mine", "fresh"))
    found = Engine.open(root).registry.read().flows
    assert "gone" not in found
    assert (found["mine"].hash, "fresh" in found) == (mine, True)


def test_a_broken_template_package_hinders_no_command(
    packages: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is named with the reason; the flows of the others arrive, and its own do once it is in
    order.
    """
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "store"))
    install(packages, "later_broken", "import nothing_that_exists\n")
    install(packages, "later_wrong", flows("head"))
    assert main.run(["list"]) == 0
    told = capsys.readouterr()
    assert "list-files" in told.out
    assert (
        "warning: the flows of later_broken 1.0: later_broken = later_broken:flows cannot be added"
        in told.err
    )
    assert "'head' cannot name a flow" in told.err
    assert main.run(["list"]) == 0
    assert "later_broken" not in capsys.readouterr().err, "it is said once"
    (packages / "nothing_that_exists.py").write_text("")
    (packages / "later_broken.py").write_text(flows("late"))
    assert main.run(["list"]) == 0
    assert "late " in capsys.readouterr().out


def test_a_new_flow_of_ours_reaches_a_store_of_the_same_version(
    tmp_path: Path, shipped_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow that our templates have got since the store was filled arrives once; one that a person
    removed does not, and nothing is built while the templates are as they were.
    """
    root = tmp_path / "store"
    shutil.copytree(shipped_files, root)
    engine = Engine.open(root)
    for name in ("fix-flow", "list-files"):
        engine.registry.remove(name)
    path = engine.store.registry_path
    text = path.read_text().replace("- fix-flow\n", "")
    path.write_text(re.sub(rf"- {re.escape(__version__)} .*", f"- {__version__}", text))
    assert engine.registry.seeded() == {__version__}
    [stamp] = engine.store.run.glob(f"{STAMPS}*")
    stamp.write_text(stamp.read_text().replace("\n", "\n0", 1))  # as other templates would be
    found = Engine.open(root).registry.read().flows
    assert ("fix-flow" in found, "list-files" in found) == (True, False)
    monkeypatch.setattr(shipped, "_points", None)
    assert Engine.open(root).registry.read().flows == found


def test_a_lost_registry_is_filled_again(tmp_path: Path) -> None:
    """The stamp of the module path is no proof that the flows are there."""
    root = tmp_path / "store"
    engine = Engine.open(root)
    engine.store.registry_path.unlink()
    assert "list-files" in Engine.open(root).registry.read().flows


def test_our_own_flows_keep_the_rules_that_an_open_does_not_check() -> None:
    """Schemas, imports and dynamic access of the shipped flows: here instead of in every first
    command, and again when a flow is run.
    """
    ours = list(shipped_flows())
    assert len(ours) > 50
    for name, bundle in ours:
        assert read_bundle(bundle.source, KNOWN, check_schemas=True) == bundle, name


def test_forbidden_code_of_another_distribution_is_refused(packages: Path, tmp_path: Path) -> None:
    """Only our own flows are added without a look at their code."""
    source = COUNT.replace(b"def run(", b"eval('1')\n\n\ndef run(")
    assert source != COUNT
    install(
        packages, "evil_flows", f"SOURCE = {source!r}\ndef flows(): return [('evil', SOURCE)]\n"
    )
    engine = Engine.open(tmp_path / "store")
    assert "'eval' is refused" in " ".join(engine.problems)
    assert "evil" not in engine.registry.read().flows
