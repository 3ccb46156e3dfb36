"""Parts of the journal that others use: chained files, file locks, the debug log."""

from __future__ import annotations

from ..journal.chain import seed
from ..journal.chained import ChainedFile, ChainedLines, create_chained, read_chained
from ..journal.infolog import InfoLog
from ..journal.lines import COMMIT, MAX_LINE_BYTES
from ..journal.lock import is_live, take

__all__ = [
    "COMMIT",
    "MAX_LINE_BYTES",
    "ChainedFile",
    "ChainedLines",
    "InfoLog",
    "create_chained",
    "is_live",
    "read_chained",
    "seed",
    "take",
]
