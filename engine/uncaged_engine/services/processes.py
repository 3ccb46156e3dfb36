"""Programs that the engine starts: runs with a limit, process groups, the ledger of what a crash
may leave.
"""

from __future__ import annotations

from uncaged_bundles.storage.runtime import runtime_directory

from ..processes.child import Child
from ..processes.communicate import OutputBuffer
from ..processes.leftovers import MARK, kill_leftovers, ledger_of, start_recorded
from ..processes.programs import MAX_STDERR_BYTES, Finished, run_program
from ..processes.shortage import full_disk, named_in

__all__ = [
    "MARK",
    "MAX_STDERR_BYTES",
    "Child",
    "Finished",
    "OutputBuffer",
    "full_disk",
    "kill_leftovers",
    "ledger_of",
    "named_in",
    "run_program",
    "runtime_directory",
    "start_recorded",
]
