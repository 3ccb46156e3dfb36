"""Contexts of a browser session."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from testbed.browser_harness import BrowserHarness
from uncaged_browser.operations import Operation
from uncaged_browser.scope import EVERYWHERE, BrowserScope
from uncaged_browser.secrets import NO_BOUND_SECRETS, BoundSecrets
from uncaged_browser.session import contexts, proxies
from uncaged_browser.session.contexts import ContextServer, SessionContexts
from uncaged_browser.session.external import ExternalBrowser
from uncaged_browser.session.guard import RequestGuard
from uncaged_browser.session.messages import ContextSpec
from uncaged_browser.session.proxies import MAX_REFUSALS, Refusals, proxied
from uncaged_browser.session.server import MAX_REFUSED, refused_fields
from uncaged_browser.session.serving import status_of
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.ids import bundle_hash, parse_thread_id
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.children import Engine


class LostBrowser:
    """Control of a browser that was killed."""

    async def perform(
        self,
        operation: Operation,
        secrets: BoundSecrets = NO_BOUND_SECRETS,
        scope: BrowserScope = EVERYWHERE,
    ) -> object:
        raise ConnectionError(operation, secrets, scope)

    async def aclose(self) -> None:
        raise ConnectionError("the browser is gone")


def test_a_context_ends_its_proxy_also_if_the_browser_is_gone() -> None:
    """The proxy of a context whose browser was killed: its thread would keep the session's process
    for ever.
    """
    address, proxy, refused = proxied(ContextSpec(name="t", hosts=("a.test",)))
    port = int(address.rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), 5).close()
    with pytest.raises(ConnectionError):
        asyncio.run(ContextServer(LostBrowser(), proxy, refused).aclose())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_proxy_without_a_listener_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sockets of a proxy whose port cannot be opened are closed."""

    def refuse(port: int) -> socket.socket:
        raise OSError(port)

    monkeypatch.setattr(proxies, "listen", refuse)
    before = psutil.Process().num_fds()
    with pytest.raises(OSError) as raised:
        proxied(ContextSpec(name="t"))
    assert psutil.Process().num_fds() == before, raised.value


def test_refusals_of_a_context_do_not_grow_for_ever() -> None:
    """The newest are kept, and those since a count are returned."""
    refused = Refusals()
    for number in range(MAX_REFUSALS + 5):
        refused.append((f"{number}.test", "not in the policy"))
    assert refused.since(refused.count) == []
    assert [host for host, _ in refused.since(refused.count - 2)] == [
        f"{MAX_REFUSALS + 3}.test",
        f"{MAX_REFUSALS + 4}.test",
    ]
    assert len(refused.since(0)) == MAX_REFUSALS


def test_an_answer_lists_few_refused_hosts() -> None:
    """A page that asks for a thousand hosts does not fill the journal with them."""
    refused = [(f"{number}.test", "no") for number in (*range(MAX_REFUSED + 3), 0)]
    fields = refused_fields(refused)
    assert fields["refused"] == sorted(f"{host}: {why}" for host, why in refused[:-1])[:MAX_REFUSED]
    assert fields["moreRefused"] == 3
    assert refused_fields(refused[:1]) == {"refused": ["0.test: no"]}


@contextmanager
def session_contexts(harness: BrowserHarness, store: Store) -> Iterator[SessionContexts]:
    """Contexts of the module's browser; they are closed after the block."""

    async def made() -> SessionContexts:  # proxies and futures belong to the browser's loop
        external = ExternalBrowser(harness.playwright, store, 0, lambda: 9)
        return SessionContexts(harness.browser.browser, harness.browser.kept, external)

    found = harness.run(made())
    try:
        yield found
    finally:
        harness.run(found.aclose())


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_a_session_that_takes_no_thread_is_a_lack_of_the_environment(
    harness: BrowserHarness, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that finds the session full, or at its end, can be resumed."""
    with session_contexts(harness, store) as found:
        monkeypatch.setattr(contexts, "MAX_CONTEXTS", 0)
        with pytest.raises(EnvironmentLacks, match="0 threads use this browser session"):
            harness.run(found.open(ContextSpec(name="t")))
    with pytest.raises(EnvironmentLacks, match="is ending"):
        harness.run(found.open(ContextSpec(name="t")))


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_a_context_that_cannot_be_made_whole_is_closed(
    harness: BrowserHarness, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure after the browser opened the context leaves none of it in the browser."""

    async def fail(guard: RequestGuard, context: object) -> None:
        raise ConnectionError(guard, context)

    monkeypatch.setattr(RequestGuard, "watch", fail)
    with session_contexts(harness, store) as found:
        before = len(harness.browser.browser.contexts)
        with pytest.raises(ConnectionError):
            harness.run(found.open(ContextSpec(name="t", proof=True)))
        assert found.names == []
    assert len(harness.browser.browser.contexts) == before


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_a_context_may_be_closed_while_others_are_swept(
    harness: BrowserHarness, store: Store
) -> None:
    """The context of a later name is closed while the status of an earlier one is read."""
    with session_contexts(harness, store) as found:

        async def sweep() -> None:
            loop = asyncio.get_running_loop()
            for name in ("a", "b"):
                await found.open(ContextSpec(name=name))

            def status(name: str) -> str | None:
                if name == "a":
                    asyncio.run_coroutine_threadsafe(found.close("b"), loop).result()
                return None

            await found.sweep(status)

        harness.run(sweep())
        assert found.names == []


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_a_context_that_is_opened_at_the_end_is_closed(
    harness: BrowserHarness, store: Store
) -> None:
    """A session that ends while the browser makes a context for a thread leaves none open."""
    with session_contexts(harness, store) as found:

        async def end() -> None:
            opening = asyncio.ensure_future(found.open(ContextSpec(name="t")))
            await asyncio.sleep(0)  # it waits for the browser from here on
            await found.aclose()
            with pytest.raises(EnvironmentLacks, match="is ending"):
                await opening

        before = len(harness.browser.browser.contexts)
        harness.run(end())
        assert found.names == []
        assert len(harness.browser.browser.contexts) == before


def test_a_journal_that_cannot_be_read_ends_no_session(store: Store) -> None:
    """Its thread counts as unknown; a thread that is not there has no status."""
    engine = Engine.open(store.root)
    thread, other = "01JAAAAAAAAAAAAAAAAAAAAAAA", "01JBBBBBBBBBBBBBBBBBBBBBBB"
    assert status_of(engine, other) is None
    path = store.data_path(bundle_hash(b"x"), parse_thread_id(thread))
    path.mkdir(parents=True)
    assert status_of(engine, thread) == "unknown"
