"""A pack in a distribution of its own: found after its installation, with flows and sentences."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.processes import end_workers

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "pack-music"
Command = Callable[..., subprocess.CompletedProcess[str]]


def install(site: Path) -> None:
    """Install the example as pip does: the package, and its metadata with the entry points."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    shutil.copytree(EXAMPLE / "pack_music", site / "pack_music")
    information = site / f"uncaged_pack_music-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = (
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in project["entry-points"].items()
    )
    (information / "entry_points.txt").write_text("\n".join(groups))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory on the module path of the command."""
    directory = tmp_path / "site"
    directory.mkdir()
    return directory


@pytest.fixture
def command(tmp_path: Path, site: Path) -> Command:
    """Run the command on a store of its own, with what is installed in `site`."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "uncaged_cli", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
            env={
                **os.environ,
                "UNCAGED_WORKFLOW_HOME": str(tmp_path / "store"),
                "PYTHONPATH": str(site),
            },
        )

    return run


def test_an_installed_pack_is_read_and_can_be_turned_off(
    command: Command, site: Path, tmp_path: Path
) -> None:
    """A store that was there before reads its sentences at the next command; a disabled one names
    the command that enables it; without the package it is gone.
    """
    try:
        assert "play-music" not in command("list").stdout
        install(site)
        played = command("do", "play Blue Train by John Coltrane")
        assert played.returncode == 0, played.stderr
        assert "playing Blue Train by John Coltrane" in played.stdout
        by_rule = command("do", "put on some jazz")
        assert "understood: play-music title=jazz" in by_rule.stderr
        assert "uncaged-pack-music" in command("pack", "list").stdout
        assert command("pack", "disable", "music").returncode == 0
        refused = command("do", "put on some jazz", "--no-model")
        assert refused.returncode == 5
        assert "uncaged-workflow pack enable music" in refused.stderr
        shutil.rmtree(site)
        site.mkdir()
        assert "uncaged-pack-music" not in command("pack", "list").stdout
    finally:
        end_workers(tmp_path / "store")
