"""Programs run as an ordinary user, with the system's own Python: the tests' may lie in a closed
home.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def as_user(source: str, *arguments: str, uid: int = 65534, paths: Sequence[Path] = ()) -> Any:
    """Run a Python program as the user *uid* and return its output, read as JSON.

    Args:
        paths: further directories of modules; the product's own are always there.
    """
    product = [
        path for path in sys.path if "site-packages" not in path and "lib/python" not in path
    ]
    words = [
        "/usr/bin/setpriv",
        "--reuid",
        str(uid),
        "--regid",
        str(uid),
        "--clear-groups",
        "/usr/bin/python3",
        "-B",
        "-c",
        source,
    ]
    environment = {
        "PYTHONPATH": os.pathsep.join([*product, *map(str, paths)]),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [*words, *arguments], capture_output=True, text=True, check=False, env=environment, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
