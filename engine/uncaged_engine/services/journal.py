"""Parts of the journal that others use: canonical JSON, file locks, the debug log."""

from __future__ import annotations

from ..journal.codec import MAX_DEPTH, CodecError, decode, depth, encode
from ..journal.infolog import InfoLog
from ..journal.lines import COMMIT
from ..journal.lock import is_live, take

__all__ = [
    "COMMIT",
    "MAX_DEPTH",
    "CodecError",
    "InfoLog",
    "decode",
    "depth",
    "encode",
    "is_live",
    "take",
]
