"""HTTP server on loopback that streams the answers of a scripted model in OpenAI's format.

A script is a generator: it yields calls of tools and is sent their results; its return value is the
answer. A conversation that the script does not know is answered with an error.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Call", "Conversation", "Play", "ScriptedModel", "scripted_model"]

NAME = "scripted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A request's messages. tools: names of the offered ones."""

    messages: Sequence[Mapping[str, Any]]
    tools: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return what the model reads before its first answer."""
        first = [one for one in self.messages if one["role"] in ("system", "user", "developer")]
        return "\n".join(_text(one.get("content")) for one in first)

    @property
    def results(self) -> list[str]:
        """Return the results of the calls of the last answer."""
        found: list[str] = []
        for message in reversed(self.messages):
            if message["role"] != "tool":
                break
            found.append(_text(message.get("content")))
        return found[::-1]


Play = Generator[Sequence[Call], list[str], str]
Script = Callable[[Conversation], Play]


class ScriptedModel:
    """Model server. errors: exceptions of scripts, which the requests got as status 400."""

    def __init__(self) -> None:
        self.requests = 0
        self.errors: list[str] = []
        self._script: Script | None = None
        self._play: Play | None = None
        self._lock = threading.Lock()
        self._server = _Server(self)
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def play(self, script: Script) -> None:
        """Answer the next conversations with *script*."""
        with self._lock:
            self._script, self._play = script, None

    def agent(self) -> Mapping[str, object]:
        """Return the settings of an agent that asks this server."""
        return {
            "use": "openai",
            "baseUrl": f"http://127.0.0.1:{self._server.server_address[1]}/v1",
            "model": NAME,
        }

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: Mapping[str, Any]) -> tuple[str, Sequence[Call]]:
        """Return text and calls for a request.

        Raises:
            RuntimeError: there is no script.
        """
        conversation = Conversation(
            messages=body["messages"],
            tools=tuple(one["function"]["name"] for one in body.get("tools", ())),
        )
        with self._lock:
            self.requests += 1
            if self._script is None:
                raise RuntimeError("no script is set; this run needs no model")
            results = conversation.results
            if self._play is None or not results:
                self._play = self._script(conversation)
                results = []
            try:
                calls = self._play.send(results) if results else next(self._play)
            except StopIteration as stop:
                self._play = None
                return str(stop.value), ()
        return "", calls


@contextmanager
def scripted_model() -> Iterator[ScriptedModel]:
    model = ScriptedModel()
    try:
        yield model
    finally:
        model.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": NAME, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            text, calls = self.server.model.answer(body)
        except Exception as exc:  # a bug of a script fails its task alone
            self.server.model.errors.append(repr(exc))
            self._send(400, {"error": {"message": repr(exc), "type": "invalid_request_error"}})
            return
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in _events(text, calls):
            self.wfile.write(f"data: {event}\n\n".encode())

    def _send(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _events(text: str, calls: Sequence[Call]) -> Iterator[str]:
    def event(delta: Mapping[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return json.dumps({"object": "chat.completion.chunk", "choices": [choice]})

    yield event({"role": "assistant", "content": text})
    for number, call in enumerate(calls):
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        tool = {"index": number, "id": f"call_{number}", "type": "function", "function": function}
        yield event({"tool_calls": [tool]})
    yield event({}, "tool_calls" if calls else "stop")
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    yield json.dumps({"object": "chat.completion.chunk", "choices": [], "usage": usage})
    yield "[DONE]"


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)
