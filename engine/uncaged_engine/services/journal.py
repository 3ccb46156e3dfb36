"""Parts of the journal that others use: chained files, file locks, the debug log."""

from __future__ import annotations

from ..journal.archive import contents as journal_bytes
from ..journal.archive import plain_of
from ..journal.chain import conversation_seed
from ..journal.chained import ChainedFile, ChainedLines, create_chained, read_chained
from ..journal.infolog import InfoLog
from ..journal.journal import JournalBusy
from ..journal.lines import COMMIT, MAX_LINE_BYTES, PACK_KEY
from ..journal.lock import is_live, take

__all__ = [
    "COMMIT",
    "MAX_LINE_BYTES",
    "PACK_KEY",
    "ChainedFile",
    "ChainedLines",
    "InfoLog",
    "JournalBusy",
    "conversation_seed",
    "create_chained",
    "is_live",
    "journal_bytes",
    "plain_of",
    "read_chained",
    "take",
]
