"""Records of a thread, read from its files: the view, the open question, and effects in a few
words.
"""

from __future__ import annotations

from ..journal.labels import effect_label, intended
from ..state.observe import ThreadView
from ..threads.answering import question

__all__ = ["ThreadView", "effect_label", "intended", "question"]
