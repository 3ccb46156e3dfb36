"""Protocols of a store, and what an implementation outside a directory needs of the core."""

from __future__ import annotations

from ..journal.blobs import blob_hash
from ..journal.chain import conversation_seed
from ..journal.chain import seed as thread_seed
from ..journal.chain import stated as stated_digest
from ..journal.journal import JournalBusy
from ..journal.lines import END, MAX_LINE_BYTES, flow_in
from ..stores.chains import ChainCheck, continued
from ..stores.endings import OPEN, ending_of
from ..stores.names import parse_conversation, parse_document
from ..stores.protocol import (
    ALL,
    BlobStorage,
    BundleStorage,
    Candidates,
    ChangedMeanwhile,
    ConversationStorage,
    DocumentStorage,
    FenceRaised,
    LineOwner,
    LineTail,
    RegistryStorage,
    StoreBackend,
    StoreLacks,
    StoreOpener,
    StoreRefused,
    ThreadEnds,
    ThreadEntry,
    ThreadHead,
    ThreadNotes,
    ThreadStorage,
    VersionedBytes,
)

__all__ = [
    "ALL",
    "END",
    "MAX_LINE_BYTES",
    "OPEN",
    "BlobStorage",
    "BundleStorage",
    "Candidates",
    "ChainCheck",
    "ChangedMeanwhile",
    "ConversationStorage",
    "DocumentStorage",
    "FenceRaised",
    "JournalBusy",
    "LineOwner",
    "LineTail",
    "RegistryStorage",
    "StoreBackend",
    "StoreLacks",
    "StoreOpener",
    "StoreRefused",
    "ThreadEnds",
    "ThreadEntry",
    "ThreadHead",
    "ThreadNotes",
    "ThreadStorage",
    "VersionedBytes",
    "blob_hash",
    "continued",
    "conversation_seed",
    "ending_of",
    "flow_in",
    "parse_conversation",
    "parse_document",
    "stated_digest",
    "thread_seed",
]
