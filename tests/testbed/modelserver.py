"""HTTP server on loopback that speaks the two wire formats of language models and sends scripted
answers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Arguments = Mapping[str, Any] | str

STOPS = {
    "anthropic": {
        "end": "end_turn",
        "tools": "tool_use",
        "length": "max_tokens",
        "refusal": "refusal",
        "context": "model_context_window_exceeded",
    },
    "openai": {
        "end": "stop",
        "tools": "tool_calls",
        "length": "length",
        "refusal": "content_filter",
        "context": "length",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Answer of the model.

    text: its pieces. calls: tool and arguments; text as arguments is sent as it is.
    thinking: a signed thought before it. status, headers, body: an answer that is no stream. cut:
    break off after the text, "hard" by closing the connection, "soft" by ending the stream politely
    but too early. gate: wait for it after the text. error: an error in the middle of the stream, by
    type.
    """

    text: Sequence[str] = ()
    calls: Sequence[tuple[str, Arguments]] = ()
    thinking: str = ""
    stop: str = ""
    input_tokens: int = 100
    output_tokens: int = 10
    cached_tokens: int = 0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    cut: str = ""
    gate: threading.Event | None = None
    error: str = ""

    @property
    def reason(self) -> str:
        return self.stop or ("tools" if self.calls else "end")


def says(*text: str, **more: Any) -> Turn:
    return Turn(text=text, **more)


def calls(*wanted: tuple[str, Arguments], **more: Any) -> Turn:
    return Turn(calls=wanted, **more)


def fails(status: int, kind: str = "api_error", message: str = "it broke", **headers: str) -> Turn:
    """An error as both wires write it; the pause before the next try is short unless a test wants
    another.
    """
    after = {
        "retry-after-ms": "5",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return Turn(
        status=status,
        headers=after,
        body={"type": "error", "error": {"type": kind, "message": message, "code": kind}},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A received request."""

    path: str
    headers: Mapping[str, str]
    body: Any


Script = Callable[[Seen], Turn]


class ModelServer:
    """Model server with answers from a list, in order, or from a function; records the requests."""

    def __init__(self, script: Sequence[Turn] | Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self.seen: list[Seen] = []
        self.models = ["text-embedding-small", "tiny-coder"]
        self.ended = threading.Event()
        self._server = _Server(self)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Without the version that only one of the two formats has in its base address."""
        return f"http://127.0.0.1:{self.port}"

    def base_url(self, wire: str) -> str:
        return self.url if wire == "anthropic" else f"{self.url}/v1"

    @property
    def asked(self) -> list[Any]:
        """The bodies of all requests to a model."""
        return [seen.body for seen in self.seen if seen.body is not None]

    def take(self, seen: Seen) -> Turn:
        with self._lock:
            self.seen.append(seen)
            if callable(self._script):
                return self._script(seen)
            number = len(self.asked) - 1
            return (
                self._script[number]
                if number < len(self._script)
                else fails(400, "invalid_request_error", "the script is over")
            )

    def start(self) -> None:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def stop(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(script: Sequence[Turn] | Script) -> Iterator[ModelServer]:
    server = ModelServer(script)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, model: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        self.server.model.seen.append(Seen(path=self.path, headers=dict(self.headers), body=None))
        self._whole(
            200,
            {},
            {
                "object": "list",
                "data": [{"id": name, "object": "model"} for name in self.server.model.models],
            },
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        turn = self.server.model.take(
            Seen(
                path=self.path,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=body,
            )
        )
        if turn.status != 200 or turn.body is not None:
            self._whole(turn.status, turn.headers, turn.body)
            return
        wire = "anthropic" if self.path.endswith("/messages") else "openai"
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for event in (anthropic if wire == "anthropic" else openai)(turn, self._hold):
                self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            if turn.cut != "hard":
                self.wfile.write(b"0\r\n\r\n")
        except OSError:  # the other side has had enough
            return

    def _hold(self, gate: threading.Event) -> None:
        """Wait for a gate, but not longer than the server lives."""
        while not gate.wait(0.01) and not self.server.model.ended.is_set():
            pass

    def _whole(self, status: int, headers: Mapping[str, str], body: Any) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            "content-type": "text/html" if isinstance(body, str) else "application/json",
            **headers,
        }.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


Hold = Callable[[threading.Event], None]


def pieces(text: str) -> list[str]:
    """Arguments arrive in parts that are no JSON by themselves."""
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def written(arguments: Arguments) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def anthropic(turn: Turn, hold: Hold) -> Iterator[bytes]:
    """Yield the events of a turn in the format of Anthropic."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": None,
        "usage": {
            "input_tokens": turn.input_tokens - turn.cached_tokens,
            "output_tokens": 1,
            "cache_read_input_tokens": turn.cached_tokens,
        },
    }
    yield anthropic_event("message_start", message={**message, "content": []})
    yield anthropic_event("ping")
    index = 0
    if turn.thinking:
        yield from anthropic_block(
            index,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": turn.thinking},
            {"type": "signature_delta", "signature": "signed"},
        )
        index += 1
    if turn.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in turn.text]
        *open_block, stop = anthropic_block(index, {"type": "text", "text": ""}, *deltas)
        yield from open_block
        if turn.gate is not None:
            hold(turn.gate)
        if turn.error:
            error = {"type": turn.error, "message": "in the middle"}
            yield anthropic_event("error", error=error)
            return
        if turn.cut:
            return
        yield stop
        index += 1
    for number, (name, arguments) in enumerate(turn.calls):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        deltas = [
            {"type": "input_json_delta", "partial_json": piece}
            for piece in pieces(written(arguments))
        ]
        yield from anthropic_block(index + number, block, *deltas)
    yield from anthropic_end(turn)


def anthropic_block(
    index: int, block: Mapping[str, Any], *deltas: Mapping[str, Any]
) -> Iterator[bytes]:
    """Yield the events of one content block: its start, its deltas, its stop."""
    yield anthropic_event("content_block_start", index=index, content_block=block)
    for delta in deltas:
        yield anthropic_event("content_block_delta", index=index, delta=delta)
    yield anthropic_event("content_block_stop", index=index)


def anthropic_end(turn: Turn) -> Iterator[bytes]:
    """Yield the events after the last block: the reason for the stop, with its details."""
    refusal = {"type": "refusal", "category": "cyber", "explanation": "not this"}
    delta = {
        "stop_reason": STOPS["anthropic"][turn.reason],
        "stop_sequence": None,
        "stop_details": refusal if turn.reason == "refusal" else None,
    }
    usage = {"output_tokens": turn.output_tokens}
    yield anthropic_event("message_delta", delta=delta, usage=usage)
    yield anthropic_event("message_stop")


def anthropic_event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def openai(turn: Turn, hold: Hold) -> Iterator[bytes]:
    def event(
        delta: Mapping[str, Any] | None = None, *, finish: str | None = None, **fields: Any
    ) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': choices, **fields})}\n\n".encode()

    yield event({"role": "assistant", "content": ""})
    if turn.thinking:
        yield event({"reasoning_content": turn.thinking})
    for piece in turn.text:
        yield event({"content": piece})
    if turn.gate is not None:
        hold(turn.gate)
    if turn.error:
        yield event(error={"type": turn.error, "message": "in the middle", "code": 503})
        return
    if turn.cut:
        return
    for number, (name, arguments) in enumerate(turn.calls):
        yield event(
            {
                "tool_calls": [
                    {
                        "index": number,
                        "id": f"call_{number}",
                        "type": "function",
                        "function": {"name": name, "arguments": ""},
                    }
                ]
            }
        )
        for piece in pieces(written(arguments)):
            yield event({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    if turn.reason == "refusal":
        yield event({"refusal": "not this"})
    yield event({}, finish=STOPS["openai"][turn.reason])
    details = {"cached_tokens": turn.cached_tokens}
    yield event(
        usage={
            "prompt_tokens": turn.input_tokens,
            "completion_tokens": turn.output_tokens,
            "prompt_tokens_details": details,
        }
    )
    yield b"data: [DONE]\n\n"
