"""Real keyrings in a temporary home, and environments that use them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BACKEND = "keyrings.alt.file.PlaintextKeyring"


def leading_to(home: Path, backend: str = BACKEND) -> dict[str, str]:
    """The environment of a person whose keyring is a file in *home*."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHON_KEYRING_BACKEND": backend}


def fill(home: Path, service: str, user: str, value: str) -> None:
    """Put an entry into it, as a person would."""
    command = [sys.executable, "-m", "keyring", "set", service, user]
    subprocess.run(
        command,
        env=leading_to(home),
        input=f"{value}\n",
        text=True,
        check=True,
        stdout=subprocess.DEVNULL,
    )
