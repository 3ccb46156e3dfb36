"""Commands of people on a shared store, in this process, and workers in processes of their own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncaged_cli.main import run as run_words

from .foreground import environment


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def told(*words: str) -> Told:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_words(words)
    return Told(code=code, out=out.getvalue(), err=err.getvalue())


@contextmanager
def worker(address: str, home: Path, config: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker with a directory of its own, in another one than the repository."""
    home.mkdir()
    (home / "config.yaml").write_text(config)
    words = [sys.executable, "-m", "uncaged_cli", "work", "--store", address]
    variables = {**environment(), "UNCAGED_WORKFLOW_HOME": str(home)}
    with subprocess.Popen(words, env=variables, cwd=home) as process:
        try:
            yield process
        finally:
            process.kill()
