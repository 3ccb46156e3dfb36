"""Import paths of an interpreter outside its own installation."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_repair.project.interpreter import ProjectInterpreter
from uncaged_repair.project.libraries import libraries_of


@pytest.fixture
def interpreter(tmp_path: Path) -> ProjectInterpreter:
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/lib/python3.11/site-packages").mkdir(parents=True)
    return ProjectInterpreter(
        executable=tmp_path / "env/bin/python", version=(3, 11, 7), reason="test"
    )


def test_directories_that_installations_point_to_are_found(
    tmp_path: Path, interpreter: ProjectInterpreter
) -> None:
    """Lines of `.pth` files, and the paths in the finders of editable installations; code in them
    is not run.
    """
    packages = tmp_path / "env/lib/python3.11/site-packages"
    (tmp_path / "env/pyvenv.cfg").write_text("")
    (tmp_path / "sibling/src/pkg").mkdir(parents=True)
    (tmp_path / "sibling/src/pkg/__init__.py").write_text("")
    (tmp_path / "plain").mkdir()
    (packages / "plain.pth").write_text(
        f"# comment\n{tmp_path / 'plain'}\n/no/such/directory\nimport os; os.abort()\n"
    )
    (packages / "__editable___pkg_1_finder.py").write_text(
        f"MAPPING = {{'pkg': {str(tmp_path / 'sibling/src/pkg')!r}}}\n"
    )
    assert libraries_of(interpreter, {"HOME": str(tmp_path)}).paths == (
        tmp_path / "plain",
        tmp_path / "sibling/src",
    )


def test_a_persons_own_packages_count_outside_of_environments_only(
    tmp_path: Path, interpreter: ProjectInterpreter
) -> None:
    own = tmp_path / ".local/lib/python3.11/site-packages"
    own.mkdir(parents=True)
    found = libraries_of(interpreter, {"HOME": str(tmp_path)})
    assert (found.paths, found.variables) == ((own,), {"PYTHONUSERBASE": str(tmp_path / ".local")})
    (tmp_path / "env/pyvenv.cfg").write_text("")
    assert libraries_of(interpreter, {"HOME": str(tmp_path)}).paths == ()


def test_nothing_to_find_is_nothing(interpreter: ProjectInterpreter) -> None:
    assert libraries_of(interpreter, {}).paths == ()
