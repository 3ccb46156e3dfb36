"""Pages of the list of threads: filter, numbers by status, and single threads of it."""

from __future__ import annotations

from ..state.observe import agents_by_role, read_start
from ..state.observe import summarise_thread as read_thread
from ..state.pages import ThreadCounts, ThreadPage
from ..stores.endings import UNSUCCESSFUL
from ..threads.ending import EXIT_CODES
from ..threads.filtering import ThreadFilter, versions_of
from ..threads.names import stamp_of_journal
from ..threads.paging import complete_index, count

STATUSES = (*EXIT_CODES, UNSUCCESSFUL)
"""The words that a filter knows."""

__all__ = [
    "STATUSES",
    "ThreadCounts",
    "ThreadFilter",
    "ThreadPage",
    "agents_by_role",
    "complete_index",
    "count",
    "read_start",
    "read_thread",
    "stamp_of_journal",
    "versions_of",
]
