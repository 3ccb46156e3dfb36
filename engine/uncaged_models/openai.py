"""Client of OpenAI's chat completions API, for any endpoint that has it; handles the differences
between servers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from uncaged_engine.services.network import RequestCancelled, WebProblem

from .anthropic import retry_after_s
from .client import ModelReply, ModelRequest, OnPiece, Stop, Usage
from .connection import ModelConnection
from .conversation import ChatTurn, Part, Text, ToolResult, ToolUse, clean
from .errors import Endpoint, ReplyBroken
from .schemas import closed
from .settings import ModelSettings

if TYPE_CHECKING:
    import httpx2

STOPS: Mapping[str, Stop] = {"length": "length", "content_filter": "refusal"}
MAX_ERROR_BYTES = 1 << 16


class OpenAIClient:
    """Client that sends requests over a connection that other threads may cut."""

    def __init__(self, settings: ModelSettings, connection: ModelConnection) -> None:
        self.model = settings.model
        self._settings = settings
        self._connection = connection
        self._endpoint = Endpoint(url=settings.url, model=settings.model)

    def send(self, request: ModelRequest, on_piece: OnPiece) -> ModelReply:
        import httpx2

        draft = OpenAIDraft()
        headers = {"authorization": f"Bearer {self._settings.key}"} if self._settings.key else {}
        try:
            with self._connection.http.stream(
                "POST",
                f"{self._settings.url}/chat/completions",
                json=self._body(request),
                headers=headers,
            ) as response:
                self._check(response)
                for event in httpx2.EventSource(response):
                    if event.data.strip() == "[DONE]":
                        draft.done = True
                        break
                    self._take(draft, event.data, on_piece)
        except (WebProblem, RequestCancelled, httpx2.HTTPError, httpx2.StreamError) as exc:
            raise self._endpoint.network_error(exc, draft.usage) from None
        except (LookupError, TypeError, AttributeError) as exc:
            raise ReplyBroken(
                f"{self._endpoint.url} sent something that is no answer: {exc}", usage=draft.usage
            ) from exc
        if draft.stopped is None and not draft.done:
            raise ReplyBroken(
                f"the answer of {self._endpoint.url} ended before it was whole", usage=draft.usage
            )
        return draft.reply()

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        settings = self._settings
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": list(messages(request.system, request.turns)),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if settings.max_tokens is not None:
            # its models refuse the name that all others use
            theirs = urlsplit(settings.url).hostname == "api.openai.com"
            body["max_completion_tokens" if theirs else "max_tokens"] = settings.max_tokens
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                }
                for tool in request.tools
            ]
            if not request.free:
                body["tool_choice"] = "none"
        form = (
            closed(request.schema) if request.schema is not None and settings.structured else None
        )
        if form is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": form},
            }
        return {**body, **settings.options}

    def _check(self, response: httpx2.Response) -> None:
        """Raise the error of a response that is no stream."""
        if response.status_code != 200:
            words = b""
            for chunk in response.iter_bytes():
                words += chunk
                if len(words) > MAX_ERROR_BYTES:
                    break
            raise self._endpoint.refused(
                response.status_code,
                complaint(words),
                retry_after_s=retry_after_s(response.headers),
            )
        self._endpoint.expect_stream(response.headers)

    def _take(self, draft: OpenAIDraft, data: str, on_piece: OnPiece) -> None:
        try:
            chunk = json.loads(data)
        except ValueError as exc:
            raise ReplyBroken(
                f"{self._endpoint.url} sent something that is not JSON: {data[:200]!r}",
                usage=draft.usage,
            ) from exc
        if not isinstance(chunk, dict):
            return
        error = chunk.get("error")
        if error:
            code = error.get("code") if isinstance(error, dict) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 500
            raise self._endpoint.refused(status, complaint(data.encode()))
        draft.take(chunk, on_piece)


def complaint(body: bytes) -> str:
    """Return the message of an error body, from any of the usual places."""
    text = body.decode("utf-8", "replace")
    try:
        data = json.loads(text)
    except ValueError:
        return text
    found = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(found, dict):
        return str(found)
    words = [found.get(name) for name in ("code", "type", "message", "detail")]
    return " ".join(str(word) for word in words if word) or text


def messages(system: str, turns: Iterable[ChatTurn]) -> Iterable[dict[str, Any]]:
    if system:
        yield {"role": "system", "content": system}
    for turn in turns:
        for part in turn.parts:
            if isinstance(part, ToolResult):
                yield {"role": "tool", "tool_call_id": part.call, "content": part.text}
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.sent_back())},
            }
            for call in turn.calls
        ]
        if turn.text or calls:
            yield {
                "role": turn.by,
                "content": turn.text or None,
                **({"tool_calls": calls} if calls else {}),
            }


@dataclass(slots=True)
class OpenAIDraft:
    """Reply that is still arriving. calls: in the order of their beginning, each with its pieces of
    arguments.
    """

    text: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    stopped: str | None = None
    done: bool = False

    def take(self, chunk: Mapping[str, Any], on_piece: OnPiece) -> None:
        usage = chunk.get("usage")
        if isinstance(usage, Mapping):
            details = usage.get("prompt_tokens_details")
            self.usage = Usage(
                input=number(usage, "prompt_tokens"),
                output=number(usage, "completion_tokens"),
                cached=number(details, "cached_tokens") if isinstance(details, Mapping) else 0,
            )
        for choice in (chunk.get("choices") or [])[:1]:
            self.stopped = choice.get("finish_reason") or self.stopped
            delta = choice.get("delta") or choice.get("message") or {}
            if delta.get("content"):
                self.text.append(delta["content"])
                on_piece(delta["content"], True)
            if delta.get("refusal"):
                self.refusal.append(delta["refusal"])
            thought = delta.get("reasoning_content") or delta.get("reasoning")
            if isinstance(thought, str):
                on_piece(thought, False)
            for piece in delta.get("tool_calls") or []:
                self._add(piece, on_piece)

    def _add(self, piece: Mapping[str, Any], on_piece: OnPiece) -> None:
        """Add a piece of a call: most servers number the calls; some give only an id, some neither
        and each call whole.
        """
        function = piece.get("function") or {}
        key, name = piece.get("index"), piece.get("id")
        if key is None and not name and not function.get("name") and self.calls:
            call: dict[str, Any] | None = self.calls[-1]
        else:
            key = key if key is not None else name or f"unnumbered {len(self.calls)}"
            call = next(
                (
                    call
                    for call in self.calls
                    if call["key"] == key and (not name or name == call["id"])
                ),
                None,
            )
        if call is None:
            call = {
                "key": key,
                "id": name or f"call_{len(self.calls) + 1}",
                "name": "",
                "pieces": [],
            }
            self.calls.append(call)
        call["name"] = call["name"] or function.get("name") or ""
        arguments = function.get("arguments")
        if arguments:
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            call["pieces"].append(text)
            on_piece(text, False)

    def reply(self) -> ModelReply:
        text = clean("".join(self.text))
        parts: list[Part] = [Text(text=text)] if text else []
        parts += [
            ToolUse(id=call["id"], name=call["name"], arguments=clean("".join(call["pieces"])))
            for call in self.calls
        ]
        stop: Stop = "refusal" if self.refusal else STOPS.get(self.stopped or "", "end")
        return ModelReply(
            parts=tuple(parts), stop=stop, usage=self.usage, detail="".join(self.refusal)
        )


def number(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else 0
