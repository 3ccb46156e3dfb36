"""Threads, read from their files: the view, the open question, effects in a few words, and the end
of a worker's drive.
"""

from __future__ import annotations

from ..journal.labels import effect_label, intended
from ..state.observe import ThreadView
from ..threads.answering import question
from ..threads.following import wait_until_left

__all__ = ["ThreadView", "effect_label", "intended", "question", "wait_until_left"]
