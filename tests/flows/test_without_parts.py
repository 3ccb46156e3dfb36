"""A product from which packages were deleted: what needs none of them works, and the rest says what
is missing.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("bundles", "engine", "roles", "templates", "cli")

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def without(packages: set[str], directory: Path) -> Command:
    """Install a copy of the product without *packages*, with a home of its own; return its
    command.
    """
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, directory / folder, ignore=shutil.ignore_patterns(*packages))
    venv.create(directory / "venv", symlinks=True)
    [site] = (directory / "venv" / "lib").glob("python*/site-packages")
    # a path in a .pth file does not have its own .pth files read, so the installed copy of the
    # product stays out
    places = [*(str(directory / folder) for folder in FOLDERS), sysconfig.get_path("purelib")]
    (site / "product.pth").write_text("".join(f"{place}\n" for place in places))
    home = directory / "home"
    home.mkdir()
    environment = {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "UNCAGED_WORKFLOW_HOME": str(home / "store"),
    }

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [
            str(directory / "venv" / "bin" / "python"),
            "-c",
            "from uncaged_cli.entry import main; main()",
            *words,
        ]
        return subprocess.run(
            argv,
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return command


@pytest.mark.slow
@pytest.mark.parametrize(
    "packages",
    [{"uncaged_repair"}, {"uncaged_agents", "uncaged_models", "uncaged_repair"}],
    ids=["repair", "agents"],
)
def test_a_script_flow_runs_without_packages_that_it_does_not_use(
    packages: set[str], tmp_path: Path
) -> None:
    """A script flow runs, is proved and is removed; `doctor` finds no problem."""
    command = without(packages, tmp_path)
    (tmp_path / "home" / "one.conf").touch()
    done = command("run", "list-files", "--param", f"path={tmp_path / 'home'}")
    assert done.returncode == 0, done.stderr
    assert "one.conf" in done.stdout
    for words in (
        ["verify", "latest"],
        ["threads"],
        ["ps"],
        ["doctor"],
        ["thread", "rm", "latest"],
    ):
        done = command(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        assert "this is a bug" not in done.stderr


@pytest.mark.slow
def test_roles_without_the_package_of_agents_are_refused_in_words(tmp_path: Path) -> None:
    """A flow with roles pauses for what is missing, verbs of the package are not listed, and no
    traceback is shown.
    """
    command = without({"uncaged_agents", "uncaged_models", "uncaged_repair"}, tmp_path)
    run = command("run", "solve-issue", "--prompt", "x")
    assert run.returncode == 4, run.stderr
    assert "nothing is registered as 'role'" in run.stderr + run.stdout
    assert "  agents  " not in command("--help").stdout
    missing = command("agents")
    assert (missing.returncode, "no verb 'agents'" in missing.stderr) == (2, True)
    lacking = command("thread", "diff", "latest")
    assert lacking.returncode == 5
    assert (
        lacking.stderr
        == "error: the package uncaged_agents is not installed; reinstall uncaged-workflow\n"
    )


@pytest.mark.slow
def test_the_default_agent_without_the_repair_is_named_as_missing(tmp_path: Path) -> None:
    """A machine without any agent says how to name one, before anything is written."""
    command = without({"uncaged_repair"}, tmp_path)
    assert command("demo", "shop").returncode == 0
    done = command("run", "solve-issue", "--prompt", "x", "--workspace", "shop")
    assert done.returncode == 4, done.stderr
    assert "the built-in repair is not installed" in done.stderr
    assert "repair" not in command("agents").stdout


@pytest.mark.slow
def test_the_whole_product_installed_in_the_same_way_has_all_verbs(tmp_path: Path) -> None:
    """The control: with no package deleted, the same installation lists the verb `agents` and the
    built-in repair.
    """
    done = without(set(), tmp_path)("agents")
    assert (done.returncode, "repair" in done.stdout) == (0, True), done.stderr
