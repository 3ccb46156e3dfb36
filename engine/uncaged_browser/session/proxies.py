"""Filtering proxies of a session: one for the browser, and one for the context of each thread."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import ExitStack

from uncaged_engine.services.listening import listen
from uncaged_engine.services.network import HostRules
from uncaged_engine.services.proxy import Proxy

from .messages import ContextSpec

__all__ = ["Refusals", "proxied"]

MAX_REFUSALS = 1_000


class Refusals:
    """Hosts that a proxy refused, each with the reason; of many, the newest. count: of all."""

    def __init__(self) -> None:
        self.count = 0
        self._newest: deque[tuple[str, str]] = deque(maxlen=MAX_REFUSALS)
        self._lock = threading.Lock()  # each connection of the proxy has a thread

    def append(self, refusal: tuple[str, str]) -> None:
        """Note a host and the reason."""
        with self._lock:
            self._newest.append(refusal)
            self.count += 1

    def since(self, count: int) -> list[tuple[str, str]]:
        """Return those that came after the first so many."""
        with self._lock:
            new = min(self.count - count, len(self._newest))
            return list(self._newest)[len(self._newest) - new :]


def proxied(spec: ContextSpec) -> tuple[str, ExitStack, Refusals]:
    """Start the proxy of a context: its address, what ends it, and the hosts that it refused."""
    refused = Refusals()
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(HostRules.of("browser", spec.limits), refused))
        listener = listen(0)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        proxy.serve(listener)
        return address, stack.pop_all(), refused
