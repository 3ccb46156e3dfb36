"""`/api/threads`: the list of threads by pages, actions on several, and starts."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from uncaged_bundles.errors import UncagedError, UsageError
from uncaged_bundles.ids import is_thread_id
from uncaged_engine.api import Engine, RunOptions, ThreadSummary
from uncaged_engine.services.thread_pages import (
    STATUSES,
    ThreadFilter,
    agents_by_role,
    read_start,
    versions_of,
)

from ..live_thread import doing_document, listed_document
from .endpoints import ApiDocument, ApiEndpoint, Asked, Fields
from .errors import response_of
from .summaries import SummaryDocument
from .thread_actions import LimitsBody

MOST = 200
MOST_PAGE_READ = 5000
"""Journals that a request reads; the page ends early after them, and continues in the next."""
MOST_SHARED_READ = 1000
"""Threads of a shared store that a filter looks at for a page, and that are counted by status."""
AT_ONCE = 8

Texts = list[str] | str | None


class ListQuery(Fields):
    """status: repeated, any of them. longer_than: seconds."""

    status: Texts = None
    flow: str | None = None
    agent: str | None = None
    min_cost: float | None = None
    longer_than: float | None = None
    text: str | None = None
    before: str | None = None
    limit: Annotated[int, Field(ge=1, le=MOST)] = 50


class ThreadDoing(ApiDocument):
    label: str
    agent: str | None
    since_ms: int | None
    seq: int | None = None
    queued: int = 0
    progress: str | None = None


class ListedThread(SummaryDocument):
    agents: list[str]
    doing: ThreadDoing | None


class ThreadList(ApiDocument):
    """before: where the next page begins; null: nowhere."""

    threads: list[ListedThread]
    before: str | None


class ThreadNumbers(ApiDocument):
    """unread: threads that are in no number yet."""

    statuses: dict[str, int]
    unread: int


class ActionBody(Fields):
    action: Literal["pause", "resume", "kill"]
    threads: Annotated[list[str], Field(min_length=1, max_length=MOST)]


class ActionResult(ApiDocument):
    thread_id: str
    done: bool
    error: dict[str, Any] | None


class ActionResults(ApiDocument):
    results: list[ActionResult]


class RunBody(LimitsBody):
    """agents: names by role, "" for the default one. workspace: a directory of the server's
    machine.
    """

    flow: str
    prompt: str = ""
    params: dict[str, Any] = Field(default_factory=dict)
    agents: dict[str, str] = Field(default_factory=dict)
    agent_settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    workspace: str | None = None


class StartedThread(ApiDocument):
    thread_id: str
    hash: str


def listed(engine: Engine, asked: Asked) -> object:
    query: ListQuery = asked.query
    found = engine.page(
        _filter(engine, query),
        before=query.before,
        limit=query.limit,
        most_read=MOST_SHARED_READ if engine.is_shared else MOST_PAGE_READ,
    )
    doing = _doing(engine, [one for one in found.threads if one.status == "running"])
    return {
        "threads": [listed_document(one, doing.get(one.thread_id)) for one in found.threads],
        "before": found.before,
    }


def numbers(engine: Engine, _: Asked) -> object:
    most_read = MOST_SHARED_READ if engine.is_shared else MOST_PAGE_READ
    found = engine.counts(most_read=most_read)
    return {"statuses": dict(found.statuses), "unread": found.unread}


def act(engine: Engine, asked: Asked) -> object:
    """Perform the action on each thread; an error of one concerns no other."""
    body: ActionBody = asked.body
    actions = {"pause": engine.pause, "resume": engine.resume, "kill": engine.kill}

    def perform(thread: str) -> Mapping[str, object]:
        try:
            if not is_thread_id(thread):
                raise UsageError(f"{thread[:80]!r} is no thread id")
            actions[body.action](thread)
        except (UncagedError, OSError) as exc:
            return {"threadId": thread, "done": False, "error": response_of(exc)[1]["error"]}
        return {"threadId": thread, "done": True, "error": None}

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {"results": list(pool.map(perform, dict.fromkeys(body.threads)))}


def start(engine: Engine, asked: Asked) -> object:
    body: RunBody = asked.body
    options = RunOptions(
        agents=body.agents,
        agent_settings=body.agent_settings,
        workspace=None if body.workspace is None else Path(body.workspace).expanduser(),
        **body.limits(),
    )
    thread = engine.run(body.flow, prompt=body.prompt, params=body.params, options=options)
    return {"threadId": thread, "hash": engine.store.locate_thread(thread)[0]}


def _filter(engine: Engine, query: ListQuery) -> ThreadFilter:
    statuses = [query.status] if isinstance(query.status, str) else query.status or []
    if unknown := sorted(set(statuses) - set(STATUSES)):
        raise UsageError(f"no status {unknown[0][:80]!r}; there are {', '.join(STATUSES)}")
    flow, versions = (
        (None, frozenset()) if query.flow is None else versions_of(engine.registry, query.flow)
    )
    return ThreadFilter(
        statuses=statuses,
        flow=flow,
        versions=versions,
        agent=query.agent,
        min_cost=query.min_cost,
        longer_than_s=query.longer_than,
        text=query.text,
    )


def _doing(
    engine: Engine, running: list[ThreadSummary]
) -> Mapping[str, Mapping[str, object] | None]:
    """Return what the workers say that threads do."""
    hashes, threads = {one.hash for one in running}, [one.thread_id for one in running]
    work = {one["threadId"]: one for one in engine.working(hashes, threads)}
    found: dict[str, Mapping[str, object] | None] = {}
    for one in running:
        agents = agents_by_role(read_start(engine.store, one.hash, one.thread_id))
        found[one.thread_id] = doing_document(work.get(one.thread_id), agents)
    return found


ENDPOINTS = (
    ApiEndpoint(
        method="GET",
        path="/api/threads",
        summary="A page of threads, those started last first",
        handler=listed,
        query=ListQuery,
        answer=ThreadList,
    ),
    ApiEndpoint(
        method="GET",
        path="/api/threads/counts",
        summary="Numbers of threads by status",
        handler=numbers,
        answer=ThreadNumbers,
    ),
    ApiEndpoint(
        method="POST",
        path="/api/threads/actions",
        summary="Pause, resume or kill threads",
        handler=act,
        body=ActionBody,
        answer=ActionResults,
    ),
    ApiEndpoint(
        method="POST",
        path="/api/threads",
        summary="Start a thread",
        handler=start,
        body=RunBody,
        answer=StartedThread,
        status=201,
    ),
)
