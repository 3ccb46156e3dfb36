"""Methods that a client may call: the verbs of a conversation, with the same meaning as on the
command line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from uncaged_bundles import fields
from uncaged_bundles.errors import NotFoundError, UncagedError, UsageError
from uncaged_bundles.storage.store import Store
from uncaged_bundles.version import __version__
from uncaged_engine.api import Engine
from uncaged_engine.services.canonical import encode

from ..calls import Call
from ..conversations.catalog import (
    chosen_conversation,
    list_conversations,
    new_conversation,
)
from ..conversations.log import read_records, read_state
from ..conversations.requests import ConversationRequest
from ..conversations.results import RequestResult
from ..conversations.sessions import new_request_id
from ..grammar.continuations import Direction
from ..packs.registered import RegisteredPacks
from .hub import ConversationHub, clock_ms
from .link import Reply
from .parameters import (
    AnswerParams,
    ChooseParams,
    CompleteParams,
    ConversationsParams,
    EditParams,
    ExplainParams,
    LogParams,
    NewParams,
    RequestParams,
    SchemasParams,
    StatusParams,
    SubmitParams,
)
from .readings import SentenceReadings

MAX_PAGE = 500
MAX_PAGE_CHARACTERS = 512 << 10
MAX_SCHEMAS = 200


class FollowingClient(Protocol):
    """Client that gets the records of conversations as they come."""

    async def follow(self, conversation: str, after: int | None) -> None:
        """Send the records after a number, or from now on, unless the client gets them already."""

    def unfollow(self, conversation: str) -> bool:
        """Send no more records of a conversation; False if none were sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodContext:
    """What a method works with."""

    hub: ConversationHub
    readings: SentenceReadings
    client: FollowingClient


async def submit(context: MethodContext, params: SubmitParams) -> object:
    return await _submit(context, params, interrupt=False)


async def interrupt(context: MethodContext, params: SubmitParams) -> object:
    return await _submit(context, params, interrupt=True)


async def _submit(context: MethodContext, params: SubmitParams, *, interrupt: bool) -> object:
    request = ConversationRequest(
        id=params.id or new_request_id(clock_ms()),
        text=params.text.strip(),
        call=None if params.call is None else Call.read(params.call),
        client_id=params.client_id,
        directory=params.directory or str(Path.home()),
        agreed=params.agreed,
        model=params.model,
        grammar=params.grammar,
        reason=params.reason,
        attachments=tuple(params.attachments),
    )
    if context.hub.is_stopping:
        return {"ok": False, "error": "server_stopping"}
    id = await _find(context, params.conversation)
    async with context.hub.using(id) as link:
        await context.client.follow(id, None)
        reply = await link.submit(request, interrupt=interrupt)
    return {**reply, "conversation": id}


async def promote(context: MethodContext, params: RequestParams) -> object:
    reply = await _send(context, params.conversation, "promote", id=params.request)
    return {"promoted": reply["promoted"]}


async def cancel(context: MethodContext, params: RequestParams) -> object:
    reply = await _send(context, params.conversation, "cancel", id=params.request)
    return {"cancelled": reply["cancelled"]}


async def answer(context: MethodContext, params: AnswerParams) -> object:
    return await _answer(context, params, params.value)


async def edit(context: MethodContext, params: EditParams) -> object:
    calls = [Call.read(call).document() for call in params.calls]
    if not calls:
        raise UsageError("an edited proposal has at least one call; to run nothing, answer no")
    return await _answer(context, params, {"calls": calls})


async def choose(context: MethodContext, params: ChooseParams) -> object:
    if params.question is not None:
        value = {"choice": params.choice, "remember": params.remember}
        return await _answer(context, params, value)
    id = await _find(context, params.conversation)
    state = await asyncio.to_thread(read_state, context.hub.engine.store, id)
    exchange = state.exchange(params.request)
    if exchange is None:
        raise NotFoundError(
            f"no request {params.request[:80]!r} among the last ones that were settled"
        )
    chosen = SubmitParams(
        conversation=id,
        call=_offered(exchange.result, params.choice).document(),
        directory=exchange.request.directory,
        client_id=params.client_id,
    )
    return await submit(context, chosen)


async def _answer(
    context: MethodContext,
    params: AnswerParams | EditParams | ChooseParams,
    value: Mapping[str, object],
) -> object:
    question = {"id": params.request, "question": params.question}
    await _send(context, params.conversation, "answer", **question, value=dict(value))
    return {"ok": True}


async def _send(
    context: MethodContext, conversation: str | None, op: str, **fields: object
) -> Reply:
    """Send an operation to the holder of a conversation."""
    async with context.hub.using(await _find(context, conversation)) as link:
        return await link.request(op, **fields)


async def _find(context: MethodContext, conversation: str | None) -> str:
    """Return the id of a conversation that a client names; of the current one without a name."""
    store = context.hub.engine.store
    return await asyncio.to_thread(chosen_conversation, store, conversation, clock_ms())


def _offered(result: RequestResult, choice: str) -> Call:
    """Return the call of one of the choices that a result offers."""
    found = {offer.id: offer.call for offer in result.choices}
    if choice not in found:
        known = ", ".join(found) or "it offers none"
        raise UsageError(f"{choice[:80]!r} is none of the choices: {known}")
    return found[choice]


async def log(context: MethodContext, params: LogParams) -> object:
    if params.after < 0:
        raise UsageError("after: the number of a record, or 0 for all")
    id = await _find(context, params.conversation)
    records, more = await asyncio.to_thread(_page, context.hub.engine.store, id, params.after)
    last = records[-1]["seq"] if records else params.after
    if params.follow:
        await context.client.follow(id, last)
    return {"conversation": id, "records": records, "after": last, "more": more}


async def unfollow(context: MethodContext, params: StatusParams) -> object:
    id = await _find(context, params.conversation)
    return {"conversation": id, "unfollowed": context.client.unfollow(id)}


def _page(store: Store, id: str, after: int) -> tuple[list[Mapping[str, Any]], bool]:
    """Return the records after a number, and whether there are more than fit one answer."""
    page: list[Mapping[str, Any]] = []
    characters = 0
    for record in read_records(store, id, after):
        characters += len(encode(record))
        if page and (len(page) == MAX_PAGE or characters > MAX_PAGE_CHARACTERS):
            return page, True
        page.append(record)
    return page, False


async def status(context: MethodContext, params: StatusParams) -> object:
    hub = context.hub
    id = await _find(context, params.conversation)
    state = await asyncio.to_thread(read_state, hub.engine.store, id)
    link = hub.find(id)
    return {
        "conversation": id,
        "name": state.name,
        "after": state.seq,
        "settled": state.settled,
        "open": [one.request.id for one in state.open],
        "waiting": [one.waiting_document() for one in state.open if one.question is not None],
        "activity": None if state.activity is None else state.activity.document(),
        "snapshot": None if link is None else link.snapshot,
        "stopping": hub.is_stopping,
        "version": __version__,
    }


async def conversations(context: MethodContext, _params: ConversationsParams) -> object:
    found = await asyncio.to_thread(list_conversations, context.hub.engine.store)
    return {
        "conversations": [
            {
                "conversation": one.id,
                "name": one.name,
                "createdMs": one.created_ms,
                "updatedMs": one.updated_ms,
                "settled": one.settled,
                "open": one.open,
                "current": one.is_current,
                "problem": one.problem,
            }
            for one in found[:MAX_PAGE]
        ],
        "more": len(found) > MAX_PAGE,
    }


async def new(context: MethodContext, params: NewParams) -> object:
    store = context.hub.engine.store
    return {
        "conversation": await asyncio.to_thread(new_conversation, store, params.name, clock_ms())
    }


async def explain(context: MethodContext, params: ExplainParams) -> object:
    directory = Path.home() if params.directory is None else Path(params.directory)
    if not directory.is_absolute():
        raise UsageError("directory: an absolute path is needed")
    return await context.readings.explain(params.text, directory)


async def complete(context: MethodContext, params: CompleteParams) -> object:
    return await context.readings.complete(params.text, Direction(params.direction))


async def schemas(context: MethodContext, params: SchemasParams) -> object:
    found, more = await asyncio.to_thread(_schemas, context.hub.engine, params)
    return {"flows": found, "more": more}


def _schemas(engine: Engine, params: SchemasParams) -> tuple[list[dict[str, object]], bool]:
    """Return the calls of the enabled flows, and whether there are more than fit one answer."""
    found: list[dict[str, object]] = []
    packs = RegisteredPacks(engine.store).read()
    for name in engine.registry.names():
        flow = engine.registry.flow(name) if name > params.after else None
        if flow is None or not flow.enabled:
            continue
        if len(found) == MAX_SCHEMAS:
            return found, True
        with suppress(UncagedError):  # one that is damaged hides no other
            descriptor = engine.bundle(name).descriptor
            pack = packs.of_flow(name, str(descriptor.raw.get("pack") or ""))
            label = "" if pack is None else pack.name
            if params.pack in (None, label) and (pack is None or pack.enabled):
                parameters = descriptor.raw.get("parameters") or {}
                about = {"pack": label, "description": descriptor.description}
                found.append({"flow": name, **about, "parameters": parameters})
    return found, False


@dataclass(frozen=True, slots=True, kw_only=True)
class WireMethod:
    """One method. ordered: it is performed before the client's next call is read."""

    params: type[Any]
    perform: Callable[[MethodContext, Any], Awaitable[object]]
    ordered: bool = True


METHODS: Mapping[str, WireMethod] = {
    "submit": WireMethod(params=SubmitParams, perform=submit),
    "interrupt": WireMethod(params=SubmitParams, perform=interrupt),
    "promote": WireMethod(params=RequestParams, perform=promote),
    "cancel": WireMethod(params=RequestParams, perform=cancel),
    "answer": WireMethod(params=AnswerParams, perform=answer),
    "choose": WireMethod(params=ChooseParams, perform=choose),
    "edit": WireMethod(params=EditParams, perform=edit),
    "log": WireMethod(params=LogParams, perform=log, ordered=False),
    "unfollow": WireMethod(params=StatusParams, perform=unfollow),
    "conversations": WireMethod(params=ConversationsParams, perform=conversations, ordered=False),
    "new": WireMethod(params=NewParams, perform=new),
    "status": WireMethod(params=StatusParams, perform=status, ordered=False),
    "schemas": WireMethod(params=SchemasParams, perform=schemas, ordered=False),
    "complete": WireMethod(params=CompleteParams, perform=complete, ordered=False),
    "explain": WireMethod(params=ExplainParams, perform=explain, ordered=False),
}


async def perform(context: MethodContext, name: str, params: object) -> object:
    """Check the parameters of a method, and perform it.

    Raises:
        KeyError: there is no such method. ShapeError: the parameters have another shape.
        UncagedError: the method's own error.
    """
    method = METHODS[name]
    return await method.perform(context, fields.read(method.params, params, ("params",)))
