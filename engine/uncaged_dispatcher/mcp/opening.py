"""Sessions with configured MCP servers: the program or the address, with its secrets, and redaction
of their values in what the server sends.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.records import dataclass, field
from uncaged_engine.services import secrets

from .client import McpClient, Redact
from .process import ProcessChannel
from .web import WebChannel

if TYPE_CHECKING:
    from uncaged_engine.services.settings import Config, McpServerSettings

_SECRET = re.compile(r"secret:([A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)")
OnCancel = Callable[[Callable[[], None]], AbstractContextManager[None]]


def _never(_action: Callable[[], None]) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """Access to the servers of a store's config for one caller. variables: further ones of a
    server's process.
    """

    config: Config
    environment: Mapping[str, str]
    directory: Path
    on_cancel: OnCancel = _never
    variables: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def open(self, name: str, timeout_s: float | None = None) -> Iterator[tuple[McpClient, Redact]]:
        """Yield a session after its handshake, and the redaction of its secrets.

        Args:
            timeout_s: for the whole session; by default that of the server's settings.
        Raises:
            EnvironmentLacks: there is no such server, it cannot be started or reached, or a secret
                has no value. McpProblem, McpCancelled.
        """
        settings = self.settings(name)
        known: dict[str, str] = {}
        deadline = time.monotonic() + (timeout_s or settings.timeout_s)

        def redact(value: object) -> object:
            return secrets.redact(value, known)

        channel = self._channel(name, settings, known, deadline, redact)
        with channel, self.on_cancel(channel.cancel):
            client = McpClient(name, channel, redact)
            client.begin()
            yield client, redact

    def settings(self, name: str) -> McpServerSettings:
        """Return the settings of a server.

        Raises:
            EnvironmentLacks: config.yaml has none of this name.
        """
        found = self.config.mcp_servers.get(name)
        if found is None:
            raise EnvironmentLacks(
                f"config.yaml has no MCP server {name!r}",
                remedy=f"add it under mcpServers, or 'uncaged-workflow pack disable {name}'",
                begun=False,
            )
        return found

    def _channel(
        self,
        name: str,
        settings: McpServerSettings,
        known: dict[str, str],
        deadline: float,
        redact: Redact,
    ) -> ProcessChannel | WebChannel:
        def filled(text: str) -> str:
            return _SECRET.sub(lambda match: self._secret(match[1], known), text)

        carried = self.config.for_agents(self.environment)
        if settings.url is not None:
            headers = {key.lower(): filled(text) for key, text in settings.headers.items()}
            return WebChannel(
                name,
                settings.url,
                headers=headers,
                environment=carried,
                deadline=deadline,
                redact=redact,
            )
        own = {key: filled(text) for key, text in settings.environment.items()}
        return ProcessChannel(
            name,
            [filled(text) for text in settings.command],
            directory=self.directory,
            environment={**carried, **own, **self.variables},
            deadline=deadline,
            redact=redact,
        )

    def _secret(self, name: str, known: dict[str, str]) -> str:
        value = secrets.secret_value(name, self.config, self.environment)
        known[value] = name
        return value
