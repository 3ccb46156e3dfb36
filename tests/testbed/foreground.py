"""Workers that a test starts in the foreground, perhaps under a tracer or with a changed module,
and ends itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage.store import Store
from uncaged_engine.worker import client

from .processes import end
from .windows import Window

TESTS = Path(__file__).parent.parent
WORKER = ("-m", "uncaged_engine.worker")
PATIENT_WORKER = ("-m", "testbed.patched", "patient-cell", WORKER[1])
"""A worker whose outcomes wait a minute for the bundle's next effect. The default wait depends on
how busy the machine is; `benchmarks` measures it.
"""


def at_window(at: Window, module: str, *, count: int = 1, deed: str = "self") -> list[str]:
    """Return the interpreter arguments that run *module* with a fault in a crash window."""
    return ["-m", "testbed.line_faults", str(at.path), str(at.line), str(count), deed, module]


def environment() -> Mapping[str, str]:
    """For a process that imports this package, and that writes nothing but what it is about."""
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}


@contextmanager
def worker(
    store: Store,
    bundle: BundleHash,
    *,
    python: Sequence[str] = WORKER,
    before: Sequence[str] = (),
    stays: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the worker of a bundle and wait until it listens, or has ended.

    Args:
        python: the interpreter's arguments in place of the plain worker. before: words in front
            of the interpreter. stays: it does not leave when it has been idle for a second, for
            the next request of a test on a busy machine.
    """
    ready, theirs = os.pipe()
    words = [*before, sys.executable, *python, str(store.root), bundle, str(theirs)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, pass_fds=(theirs,), cwd=store.root, env=environment(), stdin=pipe, stdout=pipe
    ) as process:
        os.close(theirs)
        try:
            os.read(ready, 1)  # a letter, or the end
            with (client.connect(store, bundle) if stays else None) or nullcontext():
                yield process
        finally:
            os.close(ready)
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started, and reap it."""
    import psutil

    try:
        below = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    except psutil.Error:
        below = []
    assert end([process.pid, *below]) == []
    process.wait()
