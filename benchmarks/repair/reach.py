"""Whether one edit of the measured repair restores the released file."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .cases import Case
from .releases import Release
from .sandbox import INSIDE, errors, run_tests

TIMEOUT_S = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Edits for the lines of the changed function. rank, kind: of the one that restores the
    released syntax tree, None if there is none.
    """

    candidates: int
    rank: int | None
    kind: str | None


def reach_of(case: Case, release: Release, python: Path) -> Reach:
    """Return the reach of the product that *python* imports. It is given the errors of the failing
    tests, but no types of values.
    """
    release.make_repository(case)
    files = sorted({name.partition("::")[0] for name in case.failing})
    with tempfile.TemporaryDirectory(prefix="uncaged-bench-") as directory:
        scratch = Path(directory)
        seen = scratch / "errors"
        seen.write_text(json.dumps(errors(run_tests(release, scratch, files))))
        released = scratch / "released"
        released.write_bytes(release.released(case.file).encode())
        words = [case.file, str(release.repo / case.file), str(released), str(seen)]
        done = subprocess.run(
            [str(python), str(INSIDE / "restoring_edit.py"), *words],
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
        )
    return Reach(**json.loads(done.stdout))
