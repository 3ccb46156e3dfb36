"""Conversations in use: one link each, however many clients come at once."""

from __future__ import annotations

import asyncio

import pytest
from testbed.conversing import WordReader, now_ms
from uncaged_bundles.errors import RefusedError
from uncaged_dispatcher.conversations.catalog import new_conversation
from uncaged_dispatcher.wire import hub as hubs
from uncaged_dispatcher.wire.hub import ConversationHub
from uncaged_engine.api import Engine


@pytest.mark.slow
def test_clients_that_come_at_once_share_one_link(engine: Engine) -> None:
    """Each conversation has one link, also while idle ones are closed for a new one; beyond the
    limit a conversation is refused, and at the end all are left.
    """

    async def use() -> None:
        hub = ConversationHub(engine, WordReader, drain_s=1.0)
        ids = [new_conversation(engine.store, None, now_ms()) for _ in range(3)]

        async def link_of(id: str) -> object:
            async with hub.using(id) as link:
                await link.request("snapshot")
                return link

        for id in ids:
            links = await asyncio.gather(*(link_of(id) for _ in range(5)))
            assert len(set(map(id_of, links))) == 1
        async with hub.using(ids[0]), hub.using(ids[1]):
            with pytest.raises(RefusedError, match="2 conversations are in use"):
                await link_of(ids[2])
        assert await link_of(ids[2])
        await hub.drain()
        with pytest.raises(RefusedError, match="server_stopping"):
            await link_of(ids[0])

    def id_of(value: object) -> int:
        return id(value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hubs, "MAX_CONVERSATIONS", 2)
        asyncio.run(use())
