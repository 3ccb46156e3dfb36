"""Client side of the Model Context Protocol: handshake, list of tools, call of a tool.

One request is open at a time. Requests of the server are refused, its notifications skipped, except
that the list of tools has changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from uncaged_bundles.clean import clean, shorten
from uncaged_bundles.version import __version__

PROTOCOL_VERSION = "2025-11-25"
MAX_MESSAGE_BYTES = 8 << 20
MAX_SKIPPED = 10_000
"""Messages of the server before its answer."""
MAX_PAGES = 20
SHOWN_CHARACTERS = 300
MAX_SHOWN_FROM = 20_000
METHOD_NOT_FOUND = -32601
_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

McpProblemKind = Literal["mcp", "timeout", "too-large"]


class McpProblem(Exception):
    """Failure of a server. kind: of the effect's error."""

    def __init__(self, message: str, *, kind: McpProblemKind = "mcp") -> None:
        super().__init__(message)
        self.kind = kind


class McpCancelled(Exception):
    """The exchange was cancelled by the engine."""


Redact = Callable[[Any], Any]
"""Replaces the values of secrets in JSON data or a text."""


class Channel(Protocol):
    """Transport of messages to and from one server."""

    def agree(self, version: str) -> None:
        """Use this version of the protocol from now on."""

    def send(self, message: Mapping[str, object]) -> None:
        """Send one message."""

    def receive(self) -> bytes:
        """Return the next message.

        Raises:
            McpProblem: there is none within the limits. McpCancelled.
        """


class McpClient:
    """Session with one server. tools_changed: the server announced another list of tools."""

    def __init__(self, name: str, channel: Channel, redact: Redact) -> None:
        self._name = name
        self._channel = channel
        self._redact = redact
        self._last_id = 0
        self.tools_changed = False
        self.title = ""
        self.instructions = ""

    def begin(self) -> None:
        """Make the handshake.

        Raises:
            McpProblem, McpCancelled.
        """
        answer = self._request(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "capabilities": {},
                "clientInfo": {"name": "uncaged-workflow", "version": __version__},
            },
        )
        version = answer.get("protocolVersion")
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            raise self._problem("its answer to initialize names no version of the protocol")
        self._channel.agree(version)
        information = answer.get("serverInfo")
        if isinstance(information, dict):
            self.title = str(information.get("title") or information.get("name") or "")
        self.instructions = str(answer.get("instructions") or "")
        self._channel.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def list_tools(self) -> list[Any]:
        """Return the tools as the server describes them, unchecked."""
        tools: list[Any] = []
        cursor: object = None
        for _page in range(MAX_PAGES):
            answer = self._request("tools/list", {} if cursor is None else {"cursor": cursor})
            listed = answer.get("tools")
            if not isinstance(listed, list):
                raise self._problem("its list of tools is none")
            tools += listed
            cursor = answer.get("nextCursor")
            if cursor is None:
                return tools
        raise self._problem(f"its list of tools has more than {MAX_PAGES} pages")

    def call(self, tool: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return the result of a tool, unchecked but for its type, with secrets."""
        return self._request("tools/call", {"name": tool, "arguments": dict(arguments)})

    def _request(self, method: str, params: Mapping[str, object]) -> dict[str, Any]:
        self._last_id += 1
        self._channel.send(
            {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        )
        for _skipped in range(MAX_SKIPPED):
            message = self._message()
            if "method" in message:
                self._take(message)
            elif message.get("id") == self._last_id:
                return self._result(method, message)
        raise self._problem(f"it sent {MAX_SKIPPED} messages and no answer to {method}")

    def _message(self) -> dict[str, Any]:
        data = self._channel.receive()
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise self._problem(
                f"it sent something that is no message: {self._shown(data.decode('utf-8', 'replace'))!r}"
            )
        return message

    def _take(self, message: Mapping[str, Any]) -> None:
        """Answer a request of the server, or note its notification."""
        if message["method"] == "notifications/tools/list_changed":
            self.tools_changed = True
        if isinstance(message.get("id"), str | int):
            reply: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
            if message["method"] == "ping":
                self._channel.send({**reply, "result": {}})
            else:
                error = {"code": METHOD_NOT_FOUND, "message": "this client does not offer that"}
                self._channel.send({**reply, "error": error})

    def _result(self, method: str, message: Mapping[str, Any]) -> dict[str, Any]:
        match message:
            case {"result": dict(result)}:
                return result
            case {"error": {"message": str(text)}}:
                raise self._problem(f"it refuses {method}: {self._shown(text)}")
            case _:
                raise self._problem(f"its answer to {method} has neither a result nor an error")

    def _problem(self, text: str) -> McpProblem:
        return McpProblem(f"the MCP server {self._name!r} cannot be used: {text}")

    def _shown(self, text: str) -> str:
        """Return the beginning of a server's text, for a message."""
        return shorten(str(self._redact(clean(text[:MAX_SHOWN_FROM]))), SHOWN_CHARACTERS)
