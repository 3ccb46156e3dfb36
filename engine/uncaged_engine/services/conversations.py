"""Conversations of a store that several machines share."""

from __future__ import annotations

from ..shared.conversations import (
    ConversationCopies,
    OwnedConversation,
    copies_of,
    remove_from,
    tail_of,
)

__all__ = ["ConversationCopies", "OwnedConversation", "copies_of", "remove_from", "tail_of"]
