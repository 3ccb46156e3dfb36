"""Parts of the journal that others use: canonical JSON, chained files, file locks, the debug
log.
"""

from __future__ import annotations

from ..journal.chain import seed
from ..journal.chained import ChainedFile, ChainedLines, create_chained, read_chained
from ..journal.codec import MAX_DEPTH, CodecError, decode, depth, encode
from ..journal.infolog import InfoLog
from ..journal.lines import COMMIT, MAX_LINE_BYTES
from ..journal.lock import is_live, take

__all__ = [
    "COMMIT",
    "MAX_DEPTH",
    "MAX_LINE_BYTES",
    "ChainedFile",
    "ChainedLines",
    "CodecError",
    "InfoLog",
    "create_chained",
    "decode",
    "depth",
    "encode",
    "is_live",
    "read_chained",
    "seed",
    "take",
]
