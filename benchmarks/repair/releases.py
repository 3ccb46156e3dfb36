"""Releases on disk: the unpacked source distribution with its virtual environment, and a git
repository of it with one broken place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .cases import Case

PACKAGES = ("pytest<9", "hypothesis", "pytest-asyncio", "pytest-mock", "setuptools<80")
INSTALL_TIMEOUT_S = 300
IDENTITY = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@localhost")
VENV = ".venv"


class NotPrepared(Exception):
    """A release could not be fetched, unpacked or installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Directory of one release: `pristine`, its files as unpacked and installed; `repo`, the
    repository of the current case, which holds the virtual environment.
    """

    directory: Path

    @property
    def repo(self) -> Path:
        return self.directory / "repo"

    @property
    def pristine(self) -> Path:
        return self.directory / "pristine"

    @property
    def python(self) -> Path:
        return self.repo / VENV / "bin" / "python"

    def released(self, file: str) -> str:
        return (self.pristine / file).read_bytes().decode()

    def make_repository(self, case: Case) -> str:
        """Make the repository anew with the broken place of *case*; return its commit."""
        self.restore()
        path = self.repo / case.file
        path.write_bytes(case.break_text(self.released(case.file)).encode())
        self.git("init", "--quiet", "--initial-branch=main")
        (self.repo / ".git" / "info" / "exclude").write_text(f"{VENV}\n__pycache__\n")
        self.git("add", "--force", "--", ".", f":(exclude){VENV}")
        self.git(*IDENTITY, "commit", "--quiet", "--no-verify", "--message", "Release")
        return self.git("rev-parse", "HEAD").strip()

    def restore(self) -> None:
        """Restore the released files in `repo`; there is no git repository then."""
        for path in self.repo.iterdir():
            if path.name != VENV:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.copytree(self.pristine, self.repo, symlinks=True, dirs_exist_ok=True)

    def git(self, *words: str) -> str:
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(
            ["git", *words],
            cwd=self.repo,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout


def prepare(case: Case, work: Path, sdists: Path | None) -> Release:
    """Return the release of *case* in *work*; it is unpacked and installed once."""
    release = Release(directory=work / case.release)
    if release.pristine.is_dir():
        return release
    shutil.rmtree(release.directory, ignore_errors=True)
    unpacked = release.directory / "unpacked"
    unpacked.mkdir(parents=True)
    with tarfile.open(_sdist(case, work, sdists)) as archive:
        archive.extractall(unpacked, filter="data")
    [top] = unpacked.iterdir()
    top.rename(release.repo)
    unpacked.rmdir()
    _install(release)
    copied = release.directory / "copied"
    ignored = shutil.ignore_patterns(VENV, "__pycache__")
    shutil.copytree(release.repo, copied, symlinks=True, ignore=ignored)
    copied.rename(release.pristine)
    return release


def _sdist(case: Case, work: Path, sdists: Path | None) -> Path:
    directory = sdists or work / "sdists"
    path = directory / f"{case.release}.tar.gz"
    if not path.is_file() and sdists is None:
        wanted = f"{case.library}=={case.version}"
        words = ["--no-deps", "--no-build-isolation", "--no-binary", ":all:", wanted]
        _run([sys.executable, "-m", "pip", "download", "--dest", str(directory), *words])
    if not path.is_file():
        raise NotPrepared(f"{path}: is not there")
    return path


def _install(release: Release) -> None:
    packages = [*PACKAGES, "-e", str(release.repo)]
    if uv := shutil.which("uv"):
        _run([uv, "venv", "-q", "--python", sys.executable, str(release.repo / VENV)])
        _run([uv, "pip", "install", "-q", "--python", str(release.python), *packages])
    else:
        _run([sys.executable, "-m", "venv", str(release.repo / VENV)])
        _run([str(release.python), "-m", "pip", "install", "-q", *packages])


def _run(words: Sequence[str]) -> None:
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=INSTALL_TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise NotPrepared(f"{' '.join(words[:4])} …: {(done.stderr or done.stdout)[-600:]}")
